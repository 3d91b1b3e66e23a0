//! What clients ask of a node, and what it tells of itself.
//!
//! What concerns the node is answered here; what concerns messages goes to the component, and waits
//! for the next one when there is none.

use rustix::process::{Signal, getpid, kill_process};
use weft_core::ids::{Incarnation, Peer};

use super::clients::Awaited;
use super::floor::Cast;
use super::{Flow, PARKED_MAX, Supervisor};
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::{
    CHRONICLE_MAX, NodeState, NodeStatus, Outcome, Refused, Reply, Request, Want,
};
use crate::node::im_alive::ImAlive;
use crate::node::link::{Ticket, ToComponent};
use crate::packet::PacketError;

impl Supervisor {
    pub(super) fn handle_request(&mut self, client: u64, request: Request) -> Flow {
        let Request { id, what } = request;
        let ticket = Ticket { client, id };
        match what {
            Want::Stop => {
                self.clients.reply(client, &Reply { id, what: Outcome::Done });
                return Flow::End;
            }
            _ if self.clients.are_busy() => {
                let what = Outcome::Refused(Refused::Busy);
                self.clients.reply(client, &Reply { id, what });
            }
            Want::Chronicle { about, after_ns } => {
                let entries = self.chronicle.about(about, after_ns, CHRONICLE_MAX);
                self.clients.reply(client, &Reply { id, what: Outcome::Chronicle(entries) });
            }
            Want::Evidence { about, after_ns } => {
                let what = self.evidence(about, after_ns);
                self.clients.reply(client, &Reply { id, what });
            }
            Want::Proof { origin } => {
                let what = Outcome::Proof(self.broadcasts.proof(origin));
                self.clients.reply(client, &Reply { id, what });
            }
            Want::KillNode => {
                self.clients.reply(client, &Reply { id, what: Outcome::Done });
                tracing::warn!(rank = self.rank, "killed by order, with all below");
                // A process may always signal itself.
                let _ = kill_process(getpid(), Signal::KILL);
            }
            Want::Kill => {
                let killed =
                    self.component.as_ref().map(|component| component.spawned.pidfd.kill());
                let what = match killed {
                    Some(Ok(_)) => {
                        self.note(self.rank, What::Injected { fault: "killed".to_owned() });
                        Outcome::Done
                    }
                    None if self.isolated.is_some() => Outcome::Refused(Refused::Isolated),
                    None if self.given_up => Outcome::Refused(Refused::GivenUp),
                    None => Outcome::Refused(Refused::NoComponent),
                    Some(Err(_)) => Outcome::Refused(Refused::ComponentLost),
                };
                self.clients.reply(client, &Reply { id, what });
            }
            Want::Report { .. } | Want::Beat { .. } | Want::Task { .. } => {
                let what = self.handle_task_request(&what);
                self.clients.reply(client, &Reply { id, what });
            }
            Want::Await { incarnation, peers, timeout_ms } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                let wanted = Awaited { incarnation: Incarnation(incarnation), peers, deadline_ns };
                self.clients.begin_await(ticket, wanted);
            }
            Want::Status if !self.is_ready() => {
                let what = Outcome::Status(Box::new(self.status()));
                self.clients.reply(client, &Reply { id, what });
            }
            Want::Broadcast { tag, messages, timeout_ms, then } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                let cast = Cast { tag, messages, then, deadline_ns };
                self.ask_for_floor(ticket, cast);
            }
            Want::Put { .. }
            | Want::Take { .. }
            | Want::Release { .. }
            | Want::Deliver { .. }
            | Want::EndDeliver { .. }
            | Want::Inject(_)
            | Want::Node { .. }
            | Want::Status => {
                if let Want::Inject(fault) = &what {
                    self.note_fault(fault);
                    // The next component is told of a cut, and has no fault but that.
                    if fault.outlives_component() && !self.is_ready() {
                        self.clients.reply(client, &Reply { id, what: Outcome::Done });
                        return Flow::On;
                    }
                }
                self.forward(ticket, ToComponent::Request { ticket, what });
            }
        }
        Flow::On
    }

    /// Hands a request to the component, or parks it until there is one.
    pub(super) fn forward(&mut self, ticket: Ticket, word: ToComponent) {
        let refused = match self.is_ready().then(|| self.send(&word, &[])) {
            _ if self.isolated.is_some() => Refused::Isolated,
            _ if self.given_up => Refused::GivenUp,
            Some(Ok(())) => {
                if matches!(word, ToComponent::Request { what: Want::Status, .. }) {
                    self.clients.begin_status(ticket, self.status(), now_ns());
                } else {
                    self.clients.begin(ticket);
                }
                return;
            }
            // It has died a moment ago; what the supervisor knows is answer enough.
            Some(Err(_)) if matches!(word, ToComponent::Request { what: Want::Status, .. }) => {
                let what = Outcome::Status(Box::new(self.status()));
                self.clients.reply(ticket.client, &Reply { id: ticket.id, what });
                return;
            }
            Some(Err(error @ PacketError::TooLong { .. })) => Refused::Malformed(error.to_string()),
            // Not sent, so nothing of it was begun.
            Some(Err(_)) | None if self.parked.len() < PARKED_MAX => {
                self.clients.park(ticket);
                self.parked.push_back((ticket, word));
                return;
            }
            Some(Err(_)) | None => Refused::Busy,
        };
        let what = Outcome::Refused(refused);
        self.clients.reply(ticket.client, &Reply { id: ticket.id, what });
    }

    /// Whether there is a component that answers.
    fn is_ready(&self) -> bool {
        self.component.as_ref().is_some_and(|component| component.ready)
    }

    pub(super) fn state(&self) -> NodeState {
        match &self.component {
            _ if self.isolated.is_some() => NodeState::Isolated,
            _ if self.given_up => NodeState::GivenUp,
            // What a peer that is cut off does not hear is told with the peers.
            Some(component) if component.entered || self.is_greeted() => NodeState::Running,
            Some(component) if component.ready => NodeState::Joining,
            Some(_) | None => NodeState::Starting,
        }
    }

    /// Whether messages go to every living peer and back.
    pub(super) fn is_greeted(&self) -> bool {
        self.is_ready() && self.lives.all_joined()
    }

    /// The node as the supervisor sees it; the component adds its counters.
    pub(super) fn status(&self) -> NodeStatus {
        let component = self.component.as_ref();
        let child = component.map(|component| component.spawned.child.id());
        NodeStatus {
            rank: self.rank,
            state: self.state(),
            incarnation: component.map_or(0, |component| component.incarnation.0),
            restarts: self.restarts,
            supervisor_pid: getpid().as_raw_nonzero().get(),
            component_pid: child.and_then(|pid| i32::try_from(pid).ok()),
            last_recovery_us: self.last_recovery_us,
            peers: self.lives.status(Peer(self.rank)),
            cut: self.cut_off.iter().map(|peer| peer.0).collect(),
            tasks: self.tasks.status(now_ns()),
            dirnet: None,
            counters: None,
            holders: Vec::new(),
            form: self.cluster.neb.form,
            broadcasts: Vec::new(),
            proofs: self.broadcasts.proofs(),
            refused_by_supervisor: self.refusals.told(),
            refused_by_task: self.im_alive.as_ref().map(ImAlive::refused).unwrap_or_default(),
        }
    }
}
