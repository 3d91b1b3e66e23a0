//! The members besides the root, as processes of their own.
//!
//! The root makes the memory of all, and hands each what a supervisor hands its component: its own
//! memory, and what it may reach of every other. A member ends with its socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_core::endpoint::Plan;
use weft_core::ids::Peer;

use super::board::GroupBoard;
use super::member::GroupMember;
use super::{Setting, wait};
use crate::error::BenchError;
use crate::host;
use crate::phase::{FromWriter, PATIENCE, SOCKET_FD};
use weft::packet::{PacketError, Socket};
use weft::process::{Liveness, Pidfd, Spawn, Spawned, adopt_inherited};
use weft::shm::{Grant, NodeMemory, Segment};

/// How long the root may measure behind the last word.
const WORD_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a member may take to end when its socket has closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a member that has failed may take to die.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// To a member's process.
#[derive(Debug, Serialize, Deserialize)]
enum ToMember {
    /// Be this member. With it come its own memory, the board and the root's process.
    Start { me: u16, setting: Setting },
    /// What it may reach of that peer comes with this.
    Peer { peer: u16 },
}

/// The processes of all members but the root.
#[derive(Debug)]
pub(super) struct Others(Vec<Other>);

#[derive(Debug)]
struct Other {
    peer: Peer,
    spawned: Spawned,
    /// Closed to end it.
    socket: Option<Socket>,
}

impl Others {
    /// Starts them over `memory`; returns once each takes part.
    pub(super) fn start(
        setting: &Setting,
        plan: &Plan,
        memory: &[NodeMemory],
        board: &Segment,
    ) -> Result<Self, BenchError> {
        let others = (1..setting.members).map(|peer| Other::start(Peer(peer)));
        let others = Self(others.collect::<Result<_, _>>()?);
        for other in &others.0 {
            other.greet(setting, plan, memory, board)?;
        }
        others.0.iter().try_for_each(Other::await_ready)?;
        Ok(others)
    }

    /// What the root watches while it waits.
    pub(super) fn guarded(&self) -> Result<Vec<(Peer, Pidfd)>, BenchError> {
        self.0.iter().map(|it| Ok((it.peer, it.spawned.pidfd.try_clone()?))).collect()
    }

    /// Why one of them has ended, if one has.
    pub(super) fn lost(&self) -> Option<BenchError> {
        self.0.iter().find_map(Other::lost)
    }
}

impl Other {
    fn start(peer: Peer) -> Result<Self, BenchError> {
        let (ours, theirs) = Socket::pair()?;
        let spawn = Spawn::own_program().args(["bench", "group-member"]).stdin(Stdio::null());
        let spawn = spawn.stdout(Stdio::null()).inherit(SOCKET_FD, theirs.into());
        Ok(Self { peer, spawned: spawn.start()?, socket: Some(ours) })
    }

    fn send(&self, word: &ToMember, fds: &[BorrowedFd<'_>]) -> Result<(), BenchError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        socket.send(word, fds, PATIENCE).map_err(|error| self.lost().unwrap_or(error.into()))
    }

    fn greet(
        &self,
        setting: &Setting,
        plan: &Plan,
        memory: &[NodeMemory],
        board: &Segment,
    ) -> Result<(), BenchError> {
        let (own, process) = (memory[self.peer.index()].grant_owner()?, Pidfd::of_self()?);
        let mut fds = own.borrow();
        fds.extend([board.writable_fd(), process.as_fd()]);
        self.send(&ToMember::Start { me: self.peer.0, setting: *setting }, &fds)?;
        for (peer, theirs) in (0..).zip(memory).filter(|(peer, _)| *peer != self.peer.0) {
            let grant = theirs.grant(plan.layout(), self.peer)?;
            self.send(&ToMember::Peer { peer }, &grant.borrow())?;
        }
        Ok(())
    }

    fn await_ready(&self) -> Result<(), BenchError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        match socket.recv(PATIENCE) {
            Ok((FromWriter::Ready, _)) => Ok(()),
            Ok((FromWriter::Failed { words }, _)) => {
                Err(BenchError::WriterLost { writer: self.peer, words })
            }
            Err(error) => Err(self.lost().unwrap_or(error.into())),
        }
    }

    /// Its last words, if it has ended of itself.
    fn lost(&self) -> Option<BenchError> {
        let is_dead = self.spawned.pidfd.wait_dead(LAST_WORDS).ok()? == Liveness::Dead;
        let words = match self.socket.as_ref()?.try_recv() {
            Ok(Some((FromWriter::Failed { words }, _))) => words,
            Ok(Some((FromWriter::Ready, _)) | None) | Err(_) if !is_dead => return None,
            Ok(Some((FromWriter::Ready, _)) | None) | Err(_) => "it was killed".to_owned(),
        };
        Some(BenchError::WriterLost { writer: self.peer, words })
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.socket = None;
        self.spawned.end(END_TIMEOUT);
    }
}

/// Runs the member whose socket was inherited, to the end of the measurement.
///
/// # Errors
/// [`BenchError`], which is sent to the root, too.
pub fn run_member() -> Result<(), BenchError> {
    let socket = Socket::from_fd(adopt_inherited(SOCKET_FD)?)?;
    let ended = serve(&socket);
    if let Err(error) = &ended {
        // A root that is gone needs no explanation.
        let _ = socket.send(&FromWriter::Failed { words: error.to_string() }, &[], PATIENCE);
    }
    ended
}

fn serve(socket: &Socket) -> Result<(), BenchError> {
    let (word, mut fds): (ToMember, Vec<OwnedFd>) = socket.recv(PATIENCE)?;
    let ToMember::Start { me, setting } = word else {
        return Err(BenchError::OutOfStep("the first word was not a start"));
    };
    let (Some(process), Some(board)) = (fds.pop(), fds.pop()) else {
        return Err(BenchError::OutOfStep("a start without descriptors"));
    };
    let (plan, guarded) = (setting.plan()?, vec![(Peer(0), Pidfd::from_fd(process)?)]);
    let board = GroupBoard::map(&board, setting.members)?;
    let mut member =
        GroupMember::new(Peer(me), &plan, &Grant(fds), wait(setting.members), guarded)?;
    for _ in 1..setting.members {
        let (ToMember::Peer { peer }, fds) = socket.recv(PATIENCE)? else {
            return Err(BenchError::OutOfStep("a second start"));
        };
        member.meet(&plan, Peer(peer), &Grant(fds))?;
    }
    if setting.is_alone() {
        host::take_processor(usize::from(me));
    }
    socket.send(&FromWriter::Ready, &[], PATIENCE)?;
    member.serve(&board)?;
    // One that stops in the middle is removed, and lives on: the root watches for a process that is
    // dead. It closes the socket at the end.
    match socket.recv::<ToMember>(WORD_TIMEOUT) {
        Ok(_) => Err(BenchError::OutOfStep("a word behind the last")),
        Err(PacketError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
