//! The members besides the root, as processes of their own.
//!
//! The root makes the memory of all, and hands each what a supervisor hands its component: its own
//! memory, and what it may reach of every other. A member ends with its socket.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_core::endpoint::Plan;
use weft_core::ids::Peer;

use super::board::GroupBoard;
use super::member::GroupMember;
use super::{GroupSetting, wait};
use crate::crew::Worker;
use crate::error::BenchError;
use crate::host;
use crate::phase::{FromWriter, PATIENCE, SOCKET_FD};
use crate::writer::report_end;
use weft::packet::{PacketError, Socket};
use weft::process::{Pidfd, adopt_inherited};
use weft::shm::{Grant, NodeMemory, Segment};

/// How long the root may measure behind the last word.
const WORD_TIMEOUT: Duration = Duration::from_secs(600);

/// To a member's process.
#[derive(Debug, Serialize, Deserialize)]
enum ToMember {
    /// Be this member. With it come its own memory, the board and the root's process.
    Start { me: u16, setting: GroupSetting },
    /// What it may reach of that peer comes with this.
    Peer { peer: u16 },
}

/// The processes of all members but the root.
#[derive(Debug)]
pub(super) struct Others(Vec<Worker>);

impl Others {
    /// Starts them over `memory`; returns once each takes part.
    pub(super) fn start(
        setting: &GroupSetting,
        plan: &Plan,
        memory: &[NodeMemory],
        board: &Segment,
    ) -> Result<Self, BenchError> {
        let others = (1..setting.members).map(|peer| Worker::start(Peer(peer), "group-member"));
        let others = Self(others.collect::<Result<_, _>>()?);
        for other in &others.0 {
            greet(other, setting, plan, memory, board)?;
        }
        others.0.iter().try_for_each(Worker::await_ready)?;
        Ok(others)
    }

    /// What the root watches while it waits.
    pub(super) fn guarded(&self) -> Result<Vec<(Peer, Pidfd)>, BenchError> {
        self.0.iter().map(Worker::guarded).collect()
    }

    /// Why one of them has ended, if one has.
    pub(super) fn lost(&self) -> Option<BenchError> {
        self.0.iter().find_map(Worker::lost)
    }
}

fn greet(
    other: &Worker,
    setting: &GroupSetting,
    plan: &Plan,
    memory: &[NodeMemory],
    board: &Segment,
) -> Result<(), BenchError> {
    let (own, process) = (memory[other.peer.index()].grant_owner()?, Pidfd::of_self()?);
    let mut fds = own.borrow();
    fds.extend([board.writable_fd(), process.as_fd()]);
    other.send(&ToMember::Start { me: other.peer.0, setting: *setting }, &fds)?;
    for (peer, theirs) in (0..).zip(memory).filter(|(peer, _)| *peer != other.peer.0) {
        let grant = theirs.grant(plan.layout(), other.peer)?;
        other.send(&ToMember::Peer { peer }, &grant.borrow())?;
    }
    Ok(())
}

/// Runs the member whose socket was inherited, to the end of the measurement.
///
/// # Errors
/// [`BenchError`], which is sent to the root, too.
pub fn run_member() -> Result<(), BenchError> {
    report_end(&Socket::from_fd(adopt_inherited(SOCKET_FD)?)?, serve)
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
