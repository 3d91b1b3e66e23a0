//! The one that sends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use weft_core::fabric::Words;

use super::{
    EventCounter, FanError, FanPlan, JoinAnswer, JoinRequest, NAME_MAX, READERS_MAX, ReaderLeft,
    VERSION,
};
use crate::clock::Deadline;
use crate::packet::{Caller, Callers, Listener, PacketError, Socket};
use crate::process::Pidfd;
use crate::readiness::await_any;
use crate::shm::{Mapping, ReadOnlyMapping, Segment, SegmentError};

/// How long a process that starts a writer in the same directory is waited for.
const GATE_TIMEOUT: Duration = Duration::from_secs(1);
const GATE_AGAIN: Duration = Duration::from_millis(1);
/// How many processes may have connected without having asked, and for how long.
const CALLERS_MAX: usize = 16;
const CALLER_PATIENCE: Duration = Duration::from_secs(1);
/// How long an answer waits for room in a socket that has none to wait for.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// The writer of a ring.
#[derive(Debug)]
pub struct FanWriter {
    path: PathBuf,
    plan: FanPlan,
    segment: Segment,
    pub(super) ring: Mapping,
    /// How many messages were published.
    head: u64,
    /// Given by readers that have counted.
    room: EventCounter,
    own: Pidfd,
    callers: Callers,
    readers: Vec<RingReader>,
    /// The names of readers that have died, and that no call has returned yet.
    lost: Vec<String>,
}

/// A reader, as the writer sees it.
#[derive(Debug)]
struct RingReader {
    name: String,
    process: i32,
    pidfd: Pidfd,
    /// None once it has ended without a [`ReaderLeft`]: then the process is about to.
    socket: Option<Socket>,
    count: ReadOnlyMapping,
    wake: EventCounter,
    /// How many messages it needs no more.
    taken: u64,
}

/// What has become of a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReaderFate {
    Reads,
    Left,
    Died,
}

impl RingReader {
    /// Looks at its count, which only grows, up to `head`; anything else is no count.
    fn look(&mut self, head: u64) {
        let count = self.count.load(0);
        // SYNC: words-publish. What is stored into the slot from now on comes after the loads of
        // the reader that has counted past it.
        fence(Ordering::Acquire);
        if (self.taken..=head).contains(&count) {
            self.taken = count;
        }
    }

    fn fate(&mut self) -> Result<ReaderFate, FanError> {
        if self.pidfd.is_dead()? {
            return Ok(ReaderFate::Died);
        }
        match self.socket.as_ref().map(Socket::try_recv::<ReaderLeft>) {
            Some(Ok(Some(_))) => return Ok(ReaderFate::Left),
            Some(Err(_)) => self.socket = None,
            Some(Ok(None)) | None => {}
        }
        Ok(ReaderFate::Reads)
    }
}

impl FanWriter {
    /// Makes the ring, and listens for readers at `path`.
    ///
    /// # Errors
    /// [`FanError::PathInUse`] while a process answers there. What a dead one has left is removed.
    pub fn bind(path: &Path, plan: FanPlan) -> Result<Self, FanError> {
        let plan = plan.check()?;
        let segment = Segment::create("weft-fan", plan.ring_len())?;
        let ring = Mapping::writable(segment.writable_fd(), plan.ring_len())?;
        let listener = listen(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            plan,
            segment,
            ring,
            head: 0,
            room: EventCounter::new()?,
            own: Pidfd::of_self()?,
            callers: Callers::new(listener, CALLERS_MAX, CALLER_PATIENCE),
            readers: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// Waits until there are `count` readers; whether there are by the end of `timeout`.
    ///
    /// # Errors
    /// [`FanError`].
    pub fn admit(&mut self, count: usize, timeout: Duration) -> Result<bool, FanError> {
        let deadline = Deadline::after(timeout);
        loop {
            self.settle()?;
            if self.readers.len() >= count {
                return Ok(true);
            }
            match self.callers.next::<JoinRequest>(deadline.remaining())? {
                Some(caller) => self.answer(caller)?,
                None if deadline.has_passed() => return Ok(false),
                None => {}
            }
        }
    }

    /// The names of the readers, in the order in which they have joined.
    pub fn readers(&self) -> impl Iterator<Item = &str> {
        self.readers.iter().map(|reader| reader.name.as_str())
    }

    /// Sends `payload` to all readers, among them those that wait to join; with none, it is gone.
    /// Waits while a reader is a whole ring behind. Returns the names of the readers that have died
    /// since the last call that returned names.
    ///
    /// # Errors
    /// [`FanError::Full`] after `timeout`, [`FanError::TooLong`]; nothing was sent.
    pub fn send(&mut self, payload: &[u8], timeout: Duration) -> Result<Vec<String>, FanError> {
        let limit = self.plan.message_len;
        if payload.len() > limit {
            return Err(FanError::TooLong { len: payload.len(), limit });
        }
        let deadline = Deadline::after(timeout);
        while let Some(caller) = self.callers.next::<JoinRequest>(Duration::ZERO)? {
            self.answer(caller)?;
        }
        loop {
            // Ahead of the counts: a reader that counts from here on ends the wait.
            self.room.clear();
            if self.poll(Duration::ZERO)? {
                self.settle()?;
            }
            let head = self.head;
            self.readers.iter_mut().for_each(|reader| reader.look(head));
            let Some(last) = self.readers.iter().min_by_key(|reader| reader.taken) else { break };
            if head - last.taken < self.plan.slots as u64 {
                break;
            }
            if deadline.has_passed() {
                let (name, process) = (last.name.clone(), last.process);
                return Err(FanError::Full { name, process, message: last.taken });
            }
            self.poll(deadline.remaining())?;
        }
        self.publish(payload);
        Ok(std::mem::take(&mut self.lost))
    }

    fn publish(&mut self, payload: &[u8]) {
        let (words, at) = (Words(self.ring.words()), self.plan.slot(self.head));
        words.copy_in(at + FanPlan::BYTES, payload);
        words.store(at + FanPlan::LEN, payload.len() as u64);
        words.store(at, self.head + 1);
        self.head += 1;
        words.store(FanPlan::HEAD, self.head);
        self.readers.iter().for_each(|reader| reader.wake.give());
    }

    /// Waits until a reader has counted, left or died; whether any has left or died.
    fn poll(&self, timeout: Duration) -> Result<bool, FanError> {
        let pidfds = self.readers.iter().map(|reader| reader.pidfd.as_fd());
        let sockets = self.readers.iter().filter_map(|reader| reader.socket.as_ref());
        let fds = pidfds.chain(sockets.map(AsFd::as_fd)).chain([self.room.as_fd()]);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        await_any(&mut fds, timeout).map_err(SegmentError::os("poll"))?;
        fds.pop();
        Ok(fds.iter().any(|fd| !fd.revents().is_empty()))
    }

    /// Drops the readers that have left or died, and remembers the names of the dead.
    fn settle(&mut self) -> Result<(), FanError> {
        let mut at = 0;
        while let Some(reader) = self.readers.get_mut(at) {
            match reader.fate()? {
                ReaderFate::Reads => at += 1,
                ReaderFate::Left => drop(self.readers.remove(at)),
                ReaderFate::Died => self.lost.push(self.readers.remove(at).name),
            }
        }
        Ok(())
    }

    /// Admits a reader, or says why not. One that is gone by then is none.
    fn answer(&mut self, caller: Caller<JoinRequest>) -> Result<(), FanError> {
        let Caller { socket, first: JoinRequest { version, name }, fds } = caller;
        let refused = if version != VERSION {
            Some(JoinAnswer::OtherVersion { version: VERSION })
        } else if self.readers().any(|other| other == name) {
            Some(JoinAnswer::NameInUse)
        } else if self.readers.len() + self.lost.len() >= READERS_MAX {
            Some(JoinAnswer::ReadersFull)
        } else {
            None
        };
        if let Some(refused) = refused {
            let _ = socket.send(&refused, &[], ANSWER_TIMEOUT);
            return Ok(());
        }
        let mut fds = fds.into_iter();
        let (Some(count), Some(pidfd), None) = (fds.next(), fds.next(), fds.next()) else {
            return Ok(());
        };
        let count = ReadOnlyMapping::new(count.as_fd(), FanPlan::COUNT_LEN);
        let (Ok(count), Ok(pidfd)) = (count, Pidfd::from_fd(pidfd)) else { return Ok(()) };
        if name.is_empty() || name.len() > NAME_MAX {
            return Ok(());
        }
        let (wake, ring) = (EventCounter::new()?, self.segment.read_only_fd()?);
        let process = socket.peer_credentials()?.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let joined = JoinAnswer::Joined { plan: self.plan, next: self.head };
        let sent = [ring.as_fd(), wake.as_fd(), self.room.as_fd(), self.own.as_fd()];
        if socket.send(&joined, &sent, ANSWER_TIMEOUT).is_ok() {
            let (socket, taken) = (Some(socket), self.head);
            self.readers.push(RingReader { name, process, pidfd, socket, count, wake, taken });
        }
        Ok(())
    }
}

impl Drop for FanWriter {
    /// Closes the ring: its readers read what is in it, and end.
    fn drop(&mut self) {
        Words(self.ring.words()).store(FanPlan::CLOSED, 1);
        self.readers.iter().for_each(|reader| reader.wake.give());
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens at `path`, which a dead writer may have left behind.
fn listen(path: &Path) -> Result<Listener, FanError> {
    let _gate = enter_gate(path)?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FanError::Directory { path: path.to_path_buf(), error }),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(FanError::NotASocket { path: path.to_path_buf() });
        }
        Ok(_) => match Socket::connect(path, GATE_TIMEOUT) {
            Err(PacketError::Connect { errno: Errno::CONNREFUSED | Errno::NOENT, .. }) => {
                let _ = fs::remove_file(path);
            }
            // One that answers, one whose backlog is full, and one of another kind.
            Ok(_) | Err(_) => return Err(FanError::PathInUse { path: path.to_path_buf() }),
        },
    }
    Ok(Listener::bind(path)?)
}

/// Locks the directory, so that two processes do not remove each other's sockets.
fn enter_gate(path: &Path) -> Result<File, FanError> {
    let refused = |error| FanError::Directory { path: path.to_path_buf(), error };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let gate = File::open(folder).map_err(refused)?;
    let deadline = Deadline::after(GATE_TIMEOUT);
    loop {
        match flock(&gate, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(gate),
            Err(Errno::WOULDBLOCK | Errno::INTR) if !deadline.has_passed() => {
                std::thread::park_timeout(GATE_AGAIN);
            }
            Err(errno) => return Err(refused(errno.into())),
        }
    }
}
