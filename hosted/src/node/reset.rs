//! The hook that resets a node that the cluster has given up.
//!
//! Its peers cannot reset a node by themselves. On one host the launcher can: it kills what is left
//! of the node and starts it again. Elsewhere it takes a machine's power switch, or a person.

mod to_launcher;

pub(crate) use to_launcher::ToLauncher;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use weft_core::ids::{Incarnation, Rank};

use crate::cluster::TaskName;
use crate::packet::Socket;

/// Resets nodes.
pub trait ResetNode {
    /// This node has started a boot whose first incarnation is `boot`.
    fn note_began(&mut self, boot: Incarnation);

    /// The component of this node takes part in the DIR net.
    fn note_entered(&mut self);

    /// Ends the boot of node `rank` that began with `boot`, and starts its next one. An order for a
    /// boot that is over by then changes nothing.
    fn reset(&mut self, rank: Rank, boot: Incarnation) -> ResetOutcome;

    /// By decision of a manager the boots of node `rank` up to `boot` are over: the manager resets
    /// the node.
    fn note_removed(&mut self, rank: Rank, boot: Incarnation);

    /// By decision no incarnation of node `rank` takes part any more, since `boot`.
    fn note_isolated(&mut self, rank: Rank, boot: Incarnation);

    /// By decision incarnations of node `rank` after `boot` may take part again.
    fn note_released(&mut self, rank: Rank, boot: Incarnation);

    /// The program of this node has ended in its `incarnation`, and had `joined` or not.
    fn note_exited(&mut self, incarnation: Incarnation, joined: bool, status: ExitStatus);

    /// Components of this node have failed too often: no further one is started soon, as `words`
    /// say.
    fn note_given_up(&mut self, words: &str);

    /// This node has isolated `task`, at this index in the cluster file, for its failures.
    fn note_task_isolated(&mut self, task: &TaskName, place: usize);
}

/// The result of an order to reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOutcome {
    /// It is under way.
    Ordered,
    /// Only an operator can; the alarm was raised.
    OperatorAlarm,
}

/// The launcher of a cluster on one host.
#[derive(Debug)]
pub struct Launcher {
    socket: Socket,
}

impl Launcher {
    /// The launcher at the other end of `socket`.
    #[must_use]
    pub const fn new(socket: Socket) -> Self {
        Self { socket }
    }

    /// Never waits: a launcher that has left hundreds of messages unread does not read.
    fn tell(&self, word: ToLauncher) -> ResetOutcome {
        match self.socket.send(&word, &[], Duration::ZERO) {
            Ok(()) => ResetOutcome::Ordered,
            Err(error) => {
                tracing::error!(%error, ?word, "the launcher does not listen");
                ResetOutcome::OperatorAlarm
            }
        }
    }
}

impl ResetNode for Launcher {
    fn note_began(&mut self, boot: Incarnation) {
        self.tell(ToLauncher::Began { boot: boot.0 });
    }

    fn note_entered(&mut self) {
        self.tell(ToLauncher::Entered);
    }

    fn reset(&mut self, rank: Rank, boot: Incarnation) -> ResetOutcome {
        self.tell(ToLauncher::Reset { rank: rank.0, boot: boot.0 })
    }

    fn note_removed(&mut self, rank: Rank, boot: Incarnation) {
        self.tell(ToLauncher::Removed { rank: rank.0, boot: boot.0 });
    }

    fn note_isolated(&mut self, rank: Rank, boot: Incarnation) {
        self.tell(ToLauncher::Isolated { rank: rank.0, boot: boot.0 });
    }

    fn note_released(&mut self, rank: Rank, boot: Incarnation) {
        self.tell(ToLauncher::Released { rank: rank.0, boot: boot.0 });
    }

    fn note_exited(&mut self, incarnation: Incarnation, joined: bool, status: ExitStatus) {
        let status = status.into_raw();
        self.tell(ToLauncher::Exited { incarnation: incarnation.0, joined, status });
    }

    /// The launcher says it.
    fn note_given_up(&mut self, _words: &str) {
        self.tell(ToLauncher::GivenUp);
    }

    fn note_task_isolated(&mut self, _task: &TaskName, place: usize) {
        self.tell(ToLauncher::TaskIsolated { task: place });
    }
}

/// No device: raising the alarm is the last resort.
#[derive(Debug)]
pub struct OperatorAlarm;

impl ResetNode for OperatorAlarm {
    fn note_began(&mut self, _boot: Incarnation) {}

    fn note_entered(&mut self) {}

    fn reset(&mut self, rank: Rank, boot: Incarnation) -> ResetOutcome {
        tracing::error!(
            rank = rank.0,
            boot = boot.0,
            "a node is down and nothing here can reset it: start it again with `weft node`"
        );
        ResetOutcome::OperatorAlarm
    }

    fn note_removed(&mut self, _rank: Rank, _boot: Incarnation) {}

    fn note_isolated(&mut self, Rank(rank): Rank, _boot: Incarnation) {
        tracing::error!(
            rank,
            "a node is isolated: `weft status --why {rank}` shows why, `weft release {rank}` \
             admits it again"
        );
    }

    fn note_released(&mut self, _rank: Rank, _boot: Incarnation) {}

    fn note_exited(&mut self, Incarnation(incarnation): Incarnation, _: bool, status: ExitStatus) {
        tracing::info!(incarnation, %status, "the program has ended");
    }

    fn note_given_up(&mut self, words: &str) {
        tracing::error!("{words}");
    }

    fn note_task_isolated(&mut self, task: &TaskName, _place: usize) {
        tracing::error!(%task, "failed too often and is isolated: see `weft status`");
    }
}
