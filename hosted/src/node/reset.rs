//! Who brings a node back that the cluster has given up: the hook for whatever can.
//!
//! A node cannot be reset by its peers' hands alone. On one host the launcher can: it kills what is
//! left of the node and starts it again. Elsewhere it is a machine's power switch, or a person.

use std::time::Duration;

use weft_core::ids::{Incarnation, Rank};

use crate::cluster::TaskName;
use crate::launch::ToLauncher;
use crate::packet::Socket;

/// Brings nodes back.
pub trait ResetNode {
    /// This node has begun a life whose first incarnation is `boot`.
    fn note_began(&mut self, boot: Incarnation);

    /// The component of this node takes part in the DIR net.
    fn note_entered(&mut self);

    /// Ends the life of node `rank` that began with `boot`, and begins its next one. An order for a
    /// life that is over by then changes nothing.
    fn reset(&mut self, rank: Rank, boot: Incarnation) -> ResetOutcome;

    /// By decision of a manager the boots of node `rank` up to `boot` are over: the manager resets
    /// the node.
    fn note_removed(&mut self, rank: Rank, boot: Incarnation);

    /// By decision no life of node `rank` takes part any more, since `boot`.
    fn note_isolated(&mut self, rank: Rank, boot: Incarnation);

    /// By decision lives of node `rank` after `boot` may take part again.
    fn note_released(&mut self, rank: Rank, boot: Incarnation);

    /// This node has isolated `task`, the one at this place in the cluster file, for its failures.
    fn note_task_isolated(&mut self, task: &TaskName, place: usize);
}

/// What became of an order to reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOutcome {
    /// It is on its way.
    Ordered,
    /// Nobody can but an operator, who has been told.
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

    /// Waits for nothing: a launcher that has left hundreds of messages unread does not listen.
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

    fn note_task_isolated(&mut self, _task: &TaskName, place: usize) {
        self.tell(ToLauncher::TaskIsolated { task: place });
    }
}

/// Nobody: the alarm is the last thing that can be done.
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

    fn note_task_isolated(&mut self, task: &TaskName, _place: usize) {
        tracing::error!(%task, "failed too often and is isolated: see `weft status`");
    }
}
