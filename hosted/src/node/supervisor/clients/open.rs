//! The open requests: received, and not answered yet.

use std::os::fd::OwnedFd;

use super::{Awaited, Clients, Watching};
use crate::clock::now_ns;
use crate::node::control::{NodeStatus, Outcome, Refused, Reply, Want};
use crate::node::link::Ticket;

/// How long a component may take to report its counters; one that hangs must not hide its node's
/// status.
const COUNT_NS_MAX: u64 = 500_000_000;

/// An open request.
pub(super) struct Open {
    pub(super) stage: Stage,
    /// Payload bytes that it carries.
    pub(super) payload_len: usize,
}

impl Open {
    /// A request that was just read.
    pub(super) fn heard(what: &Want) -> Self {
        Self { stage: Stage::Parked, payload_len: what.payload_len() }
    }
}

/// The stage of a request.
pub(super) enum Stage {
    /// It waits for a component to be ready, or for its turn.
    Parked,
    /// It is with the component.
    Sent,
    /// The component was asked for its counters; the supervisor knows the rest.
    Counting { known: Box<NodeStatus>, deadline_ns: u64 },
    /// It waits for the node to run.
    Await(Awaited),
    /// It waits for a later view, or for more of what is noted.
    Watch(Watching),
    /// It runs a task, and waits for an order about it.
    Guest { deadline_ns: u64 },
    /// It waits for a tensor, or for what becomes of one: whatever component serves it.
    Tensor,
}

impl Clients {
    /// The open requests of one client.
    pub(super) fn of(&self, client: u64) -> impl Iterator<Item = &Open> {
        let (first, last) = (Ticket { client, id: 0 }, Ticket { client, id: u64::MAX });
        self.open.range(first..=last).map(|(_, open)| open)
    }

    /// Whether this request was not answered yet.
    pub(in super::super) fn has_open(&self, ticket: Ticket) -> bool {
        self.open.contains_key(&ticket)
    }

    fn set(&mut self, ticket: Ticket, stage: Stage) {
        if let Some(open) = self.open.get_mut(&ticket) {
            open.stage = stage;
        }
    }

    /// Notes that a request is with the component.
    pub(in super::super) fn begin(&mut self, ticket: Ticket) {
        self.note_known_below(ticket.client);
        self.set(ticket, Stage::Sent);
    }

    /// Notes that the component was asked for what it adds to the status `known`.
    pub(in super::super) fn begin_status(&mut self, ticket: Ticket, known: NodeStatus) {
        self.note_known_below(ticket.client);
        let (known, deadline_ns) = (Box::new(known), now_ns() + COUNT_NS_MAX);
        self.set(ticket, Stage::Counting { known, deadline_ns });
    }

    /// Notes that a client waits for the node to run.
    pub(in super::super) fn begin_await(&mut self, ticket: Ticket, wanted: Awaited) {
        self.set(ticket, Stage::Await(wanted));
    }

    /// Notes that a client waits for a tensor, or for what becomes of one.
    pub(in super::super) fn begin_tensor(&mut self, ticket: Ticket) {
        self.note_known_below(ticket.client);
        self.set(ticket, Stage::Tensor);
    }

    /// Notes that a client waits for a later view, or for more of what is noted.
    pub(in super::super) fn begin_watch(&mut self, ticket: Ticket, wanted: Watching) {
        self.set(ticket, Stage::Watch(wanted));
    }

    /// Notes that a client waits for an order about its task. It waits for one answer at a time:
    /// the order must not go to a request that it has given up.
    pub(in super::super) fn begin_guest(&mut self, ticket: Ticket, deadline_ns: u64) {
        let former = self.guests().into_iter().map(|(ticket, _)| ticket);
        let former = former.filter(|former| former.client == ticket.client);
        for former in former.collect::<Vec<_>>() {
            self.finish(former, Outcome::Done);
        }
        self.set(ticket, Stage::Guest { deadline_ns });
    }

    /// Answers a request; an answer that no client waits for is dropped.
    pub(in super::super) fn finish(&mut self, ticket: Ticket, what: Outcome) {
        let Some(open) = self.open.remove(&ticket) else { return };
        let what = match (open.stage, what) {
            (Stage::Counting { known, .. }, Outcome::Status(status)) => {
                let NodeStatus { counters, mut holders, broadcasts, groups, dirnet, .. } = *status;
                holders.iter_mut().for_each(|holder| self.name(holder));
                let tensors = known.tensors.map(|store| store.with(status.tensors));
                let status =
                    NodeStatus { counters, holders, broadcasts, groups, tensors, dirnet, ..*known };
                Outcome::Status(Box::new(status))
            }
            (_, what) => what,
        };
        self.reply(ticket.client, &Reply { id: ticket.id, what }, None, now_ns());
    }

    /// Answers a request with a descriptor.
    pub(in super::super) fn finish_with(&mut self, ticket: Ticket, what: Outcome, fd: OwnedFd) {
        if self.open.remove(&ticket).is_some() {
            let reply = Reply { id: ticket.id, what };
            self.reply(ticket.client, &reply, Some(fd), now_ns());
        }
    }

    /// Refuses everything that waits for, or is with, the component.
    pub(in super::super) fn refuse_pending(&mut self, reason: &Refused) {
        let lost = *reason == Refused::ComponentLost;
        let is_refused = |open: &Open| match open.stage {
            Stage::Sent => true,
            // What the supervisor knows is answer enough.
            Stage::Counting { .. } => false,
            // Nothing was begun of it: the next component serves it.
            Stage::Parked | Stage::Tensor => !lost,
            Stage::Await(_) | Stage::Watch(_) | Stage::Guest { .. } => false,
        };
        let refused = self.open.iter().filter(|(_, open)| is_refused(open));
        for ticket in refused.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            self.finish(ticket, Outcome::Refused(reason.clone()));
        }
        for open in self.open.values_mut() {
            if let Stage::Counting { deadline_ns, .. } = &mut open.stage {
                // No component reports its counters any more.
                *deadline_ns = 0;
            }
        }
    }
}
