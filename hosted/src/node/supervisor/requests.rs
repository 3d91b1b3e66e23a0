//! The requests of clients to a node, and its status.
//!
//! What concerns the node is answered here; what concerns messages goes to the component, and waits
//! for the next one when there is none.

use std::os::fd::OwnedFd;

use rustix::process::{Signal, getpid, kill_process};
use weft_core::ids::Incarnation;

use super::clients::{Awaited, Watching};
use super::send_queue::Cast;
use super::{Supervisor, SupervisorFlow};
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::{
    CHRONICLE_MAX, GroupOutcome, GroupRefused, GroupWant, NodeState, NodeStatus, Outcome, Refused,
    Want,
};
use crate::node::im_alive::ImAlive;
use crate::node::link::{SendError, Ticket, ToComponent};
use crate::packet::PacketError;

/// Requests with memory that wait for a component.
const PARKED_MEMORIES_MAX: usize = 64;

impl Supervisor {
    pub(super) fn handle_request(
        &mut self,
        ticket: Ticket,
        what: Want,
        fds: Vec<OwnedFd>,
    ) -> SupervisorFlow {
        if let Err(refused) = self.check_owner(&what) {
            self.clients.finish(ticket, Outcome::Refused(refused));
            return SupervisorFlow::On;
        }
        match what {
            Want::Stop => {
                self.clients.finish(ticket, Outcome::Done);
                return SupervisorFlow::End;
            }
            Want::Chronicle { about, after_ns } => {
                let entries = self.chronicle.about(about, after_ns, CHRONICLE_MAX);
                self.clients.finish(ticket, Outcome::Chronicle(entries));
            }
            Want::Evidence { about, after_ns } => {
                let what = self.evidence(about, after_ns);
                self.clients.finish(ticket, what);
            }
            Want::Watch { view, after, timeout_ms } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                self.clients.begin_watch(ticket, Watching { view, after, deadline_ns });
            }
            Want::Mask => match self.watch.mask() {
                Ok(fd) => self.clients.finish_with(ticket, Outcome::Done, fd),
                Err(error) => {
                    let refused = Refused::Malformed(format!("the page cannot be shared: {error}"));
                    self.clients.finish(ticket, Outcome::Refused(refused));
                }
            },
            Want::Proof { origin } => {
                let what = Outcome::Proof(self.broadcasts.proof(origin));
                self.clients.finish(ticket, what);
            }
            Want::KillNode => {
                self.clients.finish(ticket, Outcome::Done);
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
                    None if self.supervision.is_isolated() => Outcome::Refused(Refused::Isolated),
                    None if self.starts.has_given_up() => Outcome::Refused(Refused::GivenUp),
                    None => Outcome::Refused(Refused::NoComponent),
                    Some(Err(_)) => Outcome::Refused(Refused::ComponentLost),
                };
                self.clients.finish(ticket, what);
            }
            Want::Report { .. }
            | Want::Beat { .. }
            | Want::Phase { .. }
            | Want::Notices { .. }
            | Want::Task { .. } => {
                let what = self.handle_task_request(&what);
                self.clients.finish(ticket, what);
            }
            Want::Guard { task, report, timeout_ms } => {
                self.handle_guest(ticket, &task, report, timeout_ms);
            }
            Want::Await { incarnation, peers, timeout_ms } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                let wanted = Awaited { incarnation: Incarnation(incarnation), peers, deadline_ns };
                self.clients.begin_await(ticket, wanted);
            }
            Want::Tensor { timeout_ms, what } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                self.handle_tensor_request(ticket, what, deadline_ns, fds);
            }
            Want::Status if !self.is_ready() => {
                let what = Outcome::Status(Box::new(self.status()));
                self.clients.finish(ticket, what);
            }
            Want::Group { what: GroupWant::Hold, .. } => self.grant_hold(ticket),
            Want::Broadcast { tag, messages, timeout_ms, then } => {
                let deadline_ns = now_ns().saturating_add(timeout_ms.saturating_mul(1_000_000));
                let cast = Cast { tag, messages, then, deadline_ns };
                self.ask_to_send(ticket, cast);
            }
            Want::Inject(fault) => {
                self.note_fault(&fault);
                // The next component receives the cut, and has no other fault.
                if fault.outlives_component() && !self.is_ready() {
                    self.clients.finish(ticket, Outcome::Done);
                    return SupervisorFlow::On;
                }
                let what = Want::Inject(fault);
                self.forward(ticket, ToComponent::Request { ticket, what }, fds);
            }
            // `Component::request` names every request, so that none is forgotten.
            what => self.forward(ticket, ToComponent::Request { ticket, what }, fds),
        }
        SupervisorFlow::On
    }

    /// Grants a client the memory in which the messages of groups lie, for reading.
    fn grant_hold(&mut self, ticket: Ticket) {
        let regions = super::super::plan(&self.cluster).map(|plan| {
            let hold = plan.groups().map(|(_, at)| at.hold());
            hold.and_then(|hold| Some((hold, plan.layout().spec(hold)?.len)))
        });
        let none = Refused::Group(GroupRefused::Unknown { groups: Vec::new() });
        let granted = match regions {
            Ok(Some((hold, len))) => {
                self.memory.read_only(hold).map(|fd| (fd, u64::from(len))).map_err(|error| {
                    Refused::Malformed(format!("the memory cannot be shared: {error}"))
                })
            }
            Ok(None) => Err(none),
            Err(error) => Err(Refused::Malformed(error.to_string())),
        };
        match granted {
            Ok((fd, bytes)) => {
                let what = Outcome::Group(GroupOutcome::Hold { bytes });
                self.clients.finish_with(ticket, what, fd);
            }
            Err(refused) => self.clients.finish(ticket, Outcome::Refused(refused)),
        }
    }

    /// Hands a request to the component, or parks it until there is one.
    pub(super) fn forward(&mut self, ticket: Ticket, word: ToComponent, fds: Vec<OwnedFd>) {
        let is_status = matches!(word, ToComponent::Request { what: Want::Status, .. });
        let is_crowded = self.clients.is_crowded();
        let parked = self.parked.iter().filter(|(.., fds)| !fds.is_empty()).count();
        let has_place = fds.is_empty() || parked < PARKED_MEMORIES_MAX;
        let refused = match (self.is_ready() && !is_crowded).then(|| self.send(&word, &fds)) {
            _ if self.supervision.is_isolated() => Refused::Isolated,
            _ if self.starts.has_given_up() => Refused::GivenUp,
            Some(Ok(())) if is_status => {
                return self.clients.begin_status(ticket, self.status());
            }
            Some(Ok(())) => return self.clients.begin(ticket),
            // What the supervisor knows is answer enough.
            Some(Err(_)) | None if is_status => {
                let what = Outcome::Status(Box::new(self.status()));
                return self.clients.finish(ticket, what);
            }
            Some(Err(SendError::Packet(error @ PacketError::TooLong { .. }))) => {
                Refused::Malformed(error.to_string())
            }
            None if is_crowded => Refused::Busy,
            // Not sent, so nothing of it was begun: the next component serves it.
            Some(Err(_)) | None if has_place => {
                return self.parked.push_back((ticket, word, fds));
            }
            Some(Err(_)) | None => Refused::Busy,
        };
        self.clients.finish(ticket, Outcome::Refused(refused));
    }

    /// Whether there is a component that answers.
    pub(super) fn is_ready(&self) -> bool {
        self.component.as_ref().is_some_and(|component| component.ready)
    }

    pub(super) fn state(&self) -> NodeState {
        match &self.component {
            _ if self.supervision.is_isolated() => NodeState::Isolated,
            _ if self.starts.has_given_up() => NodeState::GivenUp,
            // A peer that is cut off is shown with the peers; it does not keep the node from
            // running.
            Some(component) if component.entered || self.is_greeted() => NodeState::Running,
            _ if self.program.finished => NodeState::Finished,
            Some(component) if component.ready => NodeState::Joining,
            Some(_) | None => NodeState::Starting,
        }
    }

    /// Whether messages go to every running peer and back.
    pub(super) fn is_greeted(&self) -> bool {
        self.is_ready() && self.supervision.running() == self.supervision.joined()
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
            since_unix_ms: self.since_unix_ms,
            component_pid: child.and_then(|pid| i32::try_from(pid).ok()),
            last_recovery_us: self.last_recovery_us,
            recovery: self.recovery,
            peers: self.peers(),
            cut: self.cut_off.iter().map(|peer| peer.0).collect(),
            tasks: self.tasks.status(now_ns()),
            hooks: self.hook_status(),
            dirnet: None,
            counters: None,
            holders: Vec::new(),
            form: self.cluster.neb.form,
            broadcasts: Vec::new(),
            groups: Vec::new(),
            tensors: (self.cluster.rendezvous.pool_mib > 0).then(|| self.tensors.status()),
            proofs: self.broadcasts.proofs(),
            refused_by_supervisor: self.refusals.counts(),
            refused_by_task: self.im_alive.as_ref().map(ImAlive::refused).unwrap_or_default(),
        }
    }
}
