//! The clients of a node: who is connected, and which of their requests are open.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_core::ids::Incarnation;

use crate::node::control::{HolderStatus, NodeState, NodeStatus, Outcome, Refused, Reply};
use crate::node::link::Ticket;
use crate::packet::{Credentials, Socket};

/// How long a client may leave its socket full before it is dropped.
const SEND_TIMEOUT: Duration = Duration::from_millis(200);

/// How long a component may take to count; one that hangs must not hide its node's status.
const COUNT_NS_MAX: u64 = 500_000_000;

/// Open requests at a time, of all clients.
const OPEN_MAX: usize = 4096;

/// An open request.
enum Open {
    /// It waits for a component to be ready, or for its turn.
    Parked,
    /// It is with the component.
    Sent,
    /// The component was asked for its counters; the supervisor knows the rest.
    Counting { known: Box<NodeStatus>, deadline_ns: u64 },
    /// It waits for the node to run.
    Await(Awaited),
}

/// What a client waits for.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    pub(super) incarnation: Incarnation,
    pub(super) peers: usize,
    pub(super) deadline_ns: u64,
}

impl Awaited {
    fn is_met(&self, status: &NodeStatus) -> bool {
        let joined = status.peers.iter().filter(|peer| peer.joined).count();
        let is_greeted = status.peers.iter().all(|peer| peer.joined || peer.incarnation.is_none());
        status.state == NodeState::Running
            && is_greeted
            && status.incarnation >= self.incarnation.0
            && joined >= self.peers
    }
}

/// The clients and their open requests.
#[derive(Default)]
pub(super) struct Clients {
    sockets: BTreeMap<u64, Socket>,
    open: BTreeMap<Ticket, Open>,
}

impl Clients {
    pub(super) fn add(&mut self, client: u64, socket: Socket) {
        self.sockets.insert(client, socket);
    }

    pub(super) fn remove(&mut self, client: u64) {
        self.sockets.remove(&client);
        self.open.retain(|ticket, _| ticket.client != client);
    }

    /// Whether this client is connected.
    pub(super) fn is_connected(&self, client: u64) -> bool {
        self.sockets.contains_key(&client)
    }

    /// Whether no more requests are taken on.
    pub(super) fn are_busy(&self) -> bool {
        self.open.len() >= OPEN_MAX
    }

    /// Whether this request was not answered yet.
    pub(super) fn has_open(&self, ticket: Ticket) -> bool {
        self.open.contains_key(&ticket)
    }

    /// Notes that a request waits for a component, or for its turn.
    pub(super) fn park(&mut self, ticket: Ticket) {
        self.open.insert(ticket, Open::Parked);
    }

    /// Notes that a request is with the component.
    pub(super) fn begin(&mut self, ticket: Ticket) {
        self.open.insert(ticket, Open::Sent);
    }

    /// Notes that the component was asked for what it adds to the status `known`.
    pub(super) fn begin_status(&mut self, ticket: Ticket, known: NodeStatus, now_ns: u64) {
        let (known, deadline_ns) = (Box::new(known), now_ns + COUNT_NS_MAX);
        self.open.insert(ticket, Open::Counting { known, deadline_ns });
    }

    /// Notes that a client waits for the node to run.
    pub(super) fn begin_await(&mut self, ticket: Ticket, wanted: Awaited) {
        self.open.insert(ticket, Open::Await(wanted));
    }

    /// The component's answer to a request; one that nobody waits for is dropped.
    pub(super) fn finish(&mut self, ticket: Ticket, what: Outcome) {
        let Some(open) = self.open.remove(&ticket) else { return };
        let what = match (open, what) {
            (Open::Counting { known, .. }, Outcome::Status(told)) => {
                let NodeStatus { counters, mut holders, broadcasts, dirnet, .. } = *told;
                holders.iter_mut().for_each(|holder| self.name(holder));
                let told = NodeStatus { counters, holders, broadcasts, dirnet, ..*known };
                Outcome::Status(Box::new(told))
            }
            (_, what) => what,
        };
        self.reply(ticket.client, &Reply { id: ticket.id, what });
    }

    /// Names the process of `holder`, as the kernel attests it.
    fn name(&self, holder: &mut HolderStatus) {
        let socket = self.sockets.get(&holder.client);
        let peer = socket.and_then(|socket| socket.peer_credentials().ok());
        holder.process = peer.and_then(|peer| peer.pid).map(|pid| pid.as_raw_nonzero().get());
        holder.program = peer.and_then(Credentials::program);
    }

    /// Refuses everything that waits for, or is with, the component.
    pub(super) fn refuse_pending(&mut self, reason: &Refused) {
        let lost = *reason == Refused::ComponentLost;
        let is_refused = |open: &Open| match open {
            Open::Sent => true,
            // What the supervisor knows is answer enough.
            Open::Counting { .. } => false,
            // Nothing was begun of it: the next component will do it.
            Open::Parked => !lost,
            Open::Await(_) => false,
        };
        let refused = self.open.iter().filter(|(_, open)| is_refused(open));
        for ticket in refused.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            self.finish(ticket, Outcome::Refused(reason.clone()));
        }
        for open in self.open.values_mut() {
            if let Open::Counting { deadline_ns, .. } = open {
                // Nobody counts any more.
                *deadline_ns = 0;
            }
        }
    }

    /// When the first of them has waited long enough.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let deadline = |open: &Open| match open {
            Open::Await(wanted) => Some(wanted.deadline_ns),
            Open::Counting { deadline_ns, .. } => Some(*deadline_ns),
            Open::Parked | Open::Sent => None,
        };
        self.open.values().filter_map(deadline).min()
    }

    /// Answers those whose wait is over: for the node to run, or for a component to count.
    pub(super) fn answer_awaits(&mut self, status: &NodeStatus, now_ns: u64) {
        let mut over = Vec::new();
        for (ticket, open) in &self.open {
            let wanted = match open {
                Open::Await(wanted) => wanted,
                Open::Counting { known, deadline_ns } if now_ns >= *deadline_ns => {
                    over.push((*ticket, Outcome::Status(known.clone())));
                    continue;
                }
                Open::Parked | Open::Sent | Open::Counting { .. } => continue,
            };
            let what = match status.state {
                _ if wanted.is_met(status) => Outcome::Running(Box::new(status.clone())),
                NodeState::GivenUp => Outcome::Refused(Refused::GivenUp),
                NodeState::Isolated => Outcome::Refused(Refused::Isolated),
                _ if now_ns >= wanted.deadline_ns => Outcome::Refused(Refused::TimedOut),
                NodeState::Starting | NodeState::Joining | NodeState::Running => continue,
            };
            over.push((*ticket, what));
        }
        for (ticket, what) in over {
            self.finish(ticket, what);
        }
    }

    /// Replies to a client; one that does not read is cut off. The thread that hears it then
    /// says that it has left, so that what it holds goes back.
    pub(super) fn reply(&mut self, client: u64, reply: &Reply) {
        let Some(socket) = self.sockets.get(&client) else { return };
        if let Err(error) = socket.send(reply, &[], SEND_TIMEOUT) {
            tracing::debug!(%error, client, "a client does not read");
            socket.shut_down();
            self.remove(client);
        }
    }
}
