//! Clients that wait: for the node to run, or for a component's counters.

use weft_core::ids::Incarnation;

use super::Clients;
use super::open::{Open, Stage};
use crate::node::control::{NodeState, NodeStatus, Outcome, PeerStatus, Refused};
use crate::node::link::Ticket;

/// The condition that a client waits for.
#[derive(Clone, Copy)]
pub(in super::super) struct Awaited {
    pub(in super::super) incarnation: Incarnation,
    pub(in super::super) peers: usize,
    pub(in super::super) deadline_ns: u64,
}

/// What a watcher has, and until when it waits for more.
#[derive(Clone, Copy)]
pub(in super::super) struct Watching {
    pub(in super::super) view: u64,
    pub(in super::super) after: u64,
    pub(in super::super) deadline_ns: u64,
}

impl Awaited {
    fn is_met(&self, status: &NodeStatus) -> bool {
        // A peer behind a link that an operator has cut is not waited for.
        let is_greeted = |peer: &&PeerStatus| peer.joined || status.cut.contains(&peer.rank);
        let joined = status.peers.iter().filter(is_greeted).count();
        let is_missed = |peer: &PeerStatus| peer.incarnation.is_some() && !is_greeted(&peer);
        status.state == NodeState::Running
            && !status.peers.iter().any(is_missed)
            && status.incarnation >= self.incarnation.0
            && joined >= self.peers
    }
}

impl Clients {
    /// The earliest deadline of those that wait.
    pub(in super::super) fn next_deadline_ns(&self) -> Option<u64> {
        let deadline = |stage: &Stage| match stage {
            Stage::Await(wanted) => Some(wanted.deadline_ns),
            Stage::Watch(Watching { deadline_ns, .. })
            | Stage::Guest { deadline_ns }
            | Stage::Counting { deadline_ns, .. } => Some(*deadline_ns),
            Stage::Parked | Stage::Sent | Stage::Tensor => None,
        };
        self.open.values().filter_map(|open| deadline(&open.stage)).min()
    }

    /// The clients that watch.
    pub(in super::super) fn watching(&self) -> Vec<(Ticket, Watching)> {
        let watching = |(ticket, open): (&Ticket, &Open)| match open.stage {
            Stage::Watch(wanted) => Some((*ticket, wanted)),
            Stage::Parked
            | Stage::Sent
            | Stage::Counting { .. }
            | Stage::Await(_)
            | Stage::Tensor
            | Stage::Guest { .. } => None,
        };
        self.open.iter().filter_map(watching).collect()
    }

    /// The clients that run tasks and wait for an order, and until when.
    pub(in super::super) fn guests(&self) -> Vec<(Ticket, u64)> {
        let guest = |(ticket, open): (&Ticket, &Open)| match open.stage {
            Stage::Guest { deadline_ns } => Some((*ticket, deadline_ns)),
            Stage::Parked
            | Stage::Sent
            | Stage::Counting { .. }
            | Stage::Await(_)
            | Stage::Tensor
            | Stage::Watch(_) => None,
        };
        self.open.iter().filter_map(guest).collect()
    }

    /// Answers those whose wait is over: for the node to run, or for a component's counters.
    pub(in super::super) fn answer_awaits(&mut self, status: &NodeStatus, now_ns: u64) {
        let mut over = Vec::new();
        for (ticket, open) in &self.open {
            let wanted = match &open.stage {
                Stage::Await(wanted) => wanted,
                Stage::Counting { known, deadline_ns } if now_ns >= *deadline_ns => {
                    over.push((*ticket, Outcome::Status(known.clone())));
                    continue;
                }
                Stage::Parked
                | Stage::Sent
                | Stage::Counting { .. }
                | Stage::Watch(_)
                | Stage::Tensor
                | Stage::Guest { .. } => continue,
            };
            let what = match status.state {
                _ if wanted.is_met(status) => Outcome::Running(Box::new(status.clone())),
                NodeState::GivenUp => Outcome::Refused(Refused::GivenUp),
                NodeState::Isolated => Outcome::Refused(Refused::Isolated),
                _ if now_ns >= wanted.deadline_ns => Outcome::Refused(Refused::TimedOut),
                NodeState::Starting
                | NodeState::Joining
                | NodeState::Running
                | NodeState::Finished => continue,
            };
            over.push((*ticket, what));
        }
        for (ticket, what) in over {
            self.finish(ticket, what);
        }
    }
}
