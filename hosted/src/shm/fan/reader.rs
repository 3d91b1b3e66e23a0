//! One of those that receive.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weft_core::fabric::Words;

use super::{
    EventCounter, FanError, FanPlan, JoinAnswer, JoinRequest, NAME_MAX, ReaderLeft, VERSION,
};
use crate::clock::Deadline;
use crate::packet::{PacketError, Socket};
use crate::process::Pidfd;
use crate::readiness::await_any;
use crate::shm::{Mapping, ReadOnlyMapping, Segment, SegmentError};

/// How soon a writer that does not listen yet is looked for again.
const AGAIN: Duration = Duration::from_millis(5);
/// How long a reader that leaves waits for room to say so.
const LEFT_TIMEOUT: Duration = Duration::from_millis(100);

/// A reader of a ring.
#[derive(Debug)]
pub struct FanReader {
    plan: FanPlan,
    ring: ReadOnlyMapping,
    count: Mapping,
    /// The number of the next message, from 0.
    next: u64,
    wake: EventCounter,
    room: EventCounter,
    pub(super) writer: Pidfd,
    process: i32,
    /// Whether its end was seen.
    writer_ended: bool,
    socket: Socket,
}

impl FanReader {
    /// Joins the writer at `path`, under a name that no other living reader of it has. Waits until
    /// one listens there, and admits this.
    ///
    /// # Errors
    /// [`FanError`]; [`FanError::NoWriter`] after `timeout`.
    pub fn join(path: &Path, name: &str, timeout: Duration) -> Result<Self, FanError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(FanError::Name { name: name.to_owned() });
        }
        let deadline = Deadline::after(timeout);
        let no_writer = || FanError::NoWriter { path: path.to_path_buf() };
        let segment = Segment::create("weft-fan-count", FanPlan::COUNT_LEN)?;
        let count = Mapping::writable(segment.writable_fd(), FanPlan::COUNT_LEN)?;
        let socket = connect(path, deadline)?.ok_or_else(no_writer)?;
        socket.authorize_same_user()?;
        let asked = JoinRequest { version: VERSION, name: name.to_owned() };
        let (shown, own) = (segment.read_only_fd()?, Pidfd::of_self()?);
        socket.send(&asked, &[shown.as_fd(), own.as_fd()], deadline.remaining())?;
        let answered = socket.recv::<JoinAnswer>(deadline.remaining());
        let (answer, fds) = answered.map_err(|error| match error {
            PacketError::TimedOut { .. } | PacketError::Closed => {
                // An answer that is on its way finds no reader.
                leave(&socket);
                no_writer()
            }
            error => error.into(),
        })?;
        match answer {
            JoinAnswer::Joined { plan, next } => {
                Self::joined((plan.check()?, next), count, socket, fds)
            }
            JoinAnswer::OtherVersion { version } => Err(FanError::OtherVersion { version }),
            JoinAnswer::NameInUse => Err(FanError::NameInUse { name: name.to_owned() }),
            JoinAnswer::ReadersFull => Err(FanError::ReadersFull),
        }
    }

    fn joined(
        (plan, next): (FanPlan, u64),
        count: Mapping,
        socket: Socket,
        fds: Vec<OwnedFd>,
    ) -> Result<Self, FanError> {
        let found = fds.len();
        let fds: [OwnedFd; 4] =
            fds.try_into().map_err(|_| SegmentError::Count { expected: 4, found })?;
        let [ring, wake, room, writer] = fds;
        let process = socket.peer_credentials()?.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        Ok(Self {
            ring: ReadOnlyMapping::new(ring.as_fd(), plan.ring_len())?,
            plan,
            count,
            next,
            wake: EventCounter(wake),
            room: EventCounter(room),
            writer: Pidfd::from_fd(writer)?,
            process,
            writer_ended: false,
            socket,
        })
    }

    /// The next message; none by the end of `timeout`.
    ///
    /// # Errors
    /// [`FanError::WriterEnded`] and [`FanError::Closed`], once no message is left.
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, FanError> {
        let deadline = Deadline::after(timeout);
        loop {
            // Ahead of the look: a message that comes from here on ends the wait.
            self.wake.clear();
            if self.load(FanPlan::CLOSED) != 0 && self.load(FanPlan::HEAD) == self.next {
                return Err(FanError::Closed);
            }
            if self.load(FanPlan::HEAD) != self.next {
                return self.take().map(Some);
            }
            if self.writer_ended {
                return Err(FanError::WriterEnded { process: self.process });
            }
            self.wait(deadline)?;
            // No thread of it stores any more: the next look is the last one.
            self.writer_ended = self.writer.is_dead()?;
            if deadline.has_passed() && !self.writer_ended && self.load(FanPlan::HEAD) == self.next
            {
                return Ok(None);
            }
        }
    }

    fn load(&self, offset: usize) -> u64 {
        let word = self.ring.load(offset / Segment::WORD_LEN);
        // SYNC: words-publish. What is loaded from now on was stored before that word, or later.
        fence(Ordering::Acquire);
        word
    }

    fn take(&mut self) -> Result<Vec<u8>, FanError> {
        let (message, at) = (self.next, self.plan.slot(self.next));
        let len = usize::try_from(self.load(at + FanPlan::LEN)).unwrap_or(usize::MAX);
        if self.load(at) != message + 1 || len > self.plan.message_len {
            return Err(FanError::Damaged { message });
        }
        let mut bytes = vec![0; len];
        self.ring.copy_out(at + FanPlan::BYTES, &mut bytes);
        self.next += 1;
        // Behind the copy: from here on the writer may use the slot again.
        Words(self.count.words()).store(0, self.next);
        self.room.give();
        Ok(bytes)
    }

    /// Until there is a message, or the writer has ended.
    fn wait(&self, deadline: Deadline) -> Result<(), FanError> {
        let fds = [self.wake.as_fd(), self.writer.as_fd()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        Ok(await_any(&mut fds, deadline.remaining()).map_err(SegmentError::os("poll"))?)
    }
}

impl Drop for FanReader {
    fn drop(&mut self) {
        leave(&self.socket);
    }
}

/// The writer waits for this reader no more.
fn leave(socket: &Socket) {
    // A writer that is gone waits for no reader.
    let _ = socket.send(&ReaderLeft, &[], LEFT_TIMEOUT);
}

/// A connection to the writer at `path`, once there is one; none after `deadline`.
fn connect(path: &Path, deadline: Deadline) -> Result<Option<Socket>, FanError> {
    loop {
        match Socket::connect(path, deadline.remaining()) {
            Ok(socket) => return Ok(Some(socket)),
            Err(PacketError::Connect { errno: Errno::NOENT | Errno::CONNREFUSED, .. }) => {
                if deadline.has_passed() {
                    return Ok(None);
                }
                std::thread::park_timeout(AGAIN.min(deadline.remaining()));
            }
            Err(PacketError::TimedOut { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
