//! The supervisor's side of the DIR net: frames, clones, removal, and the notes about them.
//!
//! The supervisor does not restart an ended component by its own decision: the I'm-Alive Task
//! raises the alarm, the manager answers with SPAN, and the task requests the clone. When no answer
//! comes for long, or no other component runs that could answer, the task starts the clone by
//! itself. A node that was removed starts its next boot, with all that is below it.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use weft_core::dirnet::{End, Post};
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};

use super::{StartedComponent, Supervisor};
use crate::bootstrap::{Datagram, DatagramPort};
use crate::clock::now_ns;
use crate::node::NodeError;
use crate::node::chronicle::{What, alarm_words};
use crate::node::component::{NOT_ENTERED, dirnet_config, dirnet_profile};
use crate::node::control::{Fault, Payload, Refused, Want};
use crate::node::im_alive::{ImAlive, Order};
use crate::node::link::{SUPERVISOR, Ticket, ToComponent};
use crate::node::reset::ResetOutcome;
use crate::shm::Flag;

/// A frame was dropped: one boot of the node is over, and the next has not begun.
const BETWEEN_LIVES: &str = "between-lives";

/// A frame was dropped: the component does not read the link.
const LINK_FULL: &str = "link-full";

/// The number of SIGKILL.
const KILLED: i32 = Signal::KILL.as_raw();

impl Supervisor {
    /// Begins the boot `boot` of this node, and starts its I'm-Alive Task with it.
    pub(super) fn begin_life(&mut self, boot: Incarnation) -> Result<(), NodeError> {
        self.generation = 0;
        self.reset.note_began(boot);
        let me = Rank(self.rank);
        let post = Post {
            me,
            boot,
            others: dirnet_config(&self.cluster, me)?.others(),
            profile: dirnet_profile(&self.cluster)?,
        };
        let flag = Flag::open(self.flag.writable_fd())?;
        let events = self.events.clone();
        let sink = Box::new(move |order| events.order(boot, order));
        let datagrams = self.bootstrap.datagrams();
        self.im_alive = Some(ImAlive::start(post, flag, datagrams, self.cut.clone(), sink)?);
        Ok(())
    }

    /// The first component of the node's present boot; those that follow are clones of it.
    pub(super) fn boot(&self) -> Option<Incarnation> {
        self.im_alive.as_ref().map(ImAlive::boot)
    }

    /// Handles an order of the I'm-Alive Task of the boot `boot`.
    pub(super) fn handle_order(&mut self, boot: Incarnation, order: Order) {
        if self.boot() != Some(boot) {
            return;
        }
        match order {
            Order::Alarm(alarm) => {
                self.note(self.rank, What::Alarm { why: alarm_words(alarm).to_owned() });
                self.tell_alone();
            }
            Order::Tell(news) => {
                let (node, what) = What::news(news, Rank(self.rank));
                self.note(node.0, what);
            }
            Order::Spawn { generation } => {
                self.generation = generation;
                self.starts.handle_clone();
                self.take_steps();
            }
        }
    }

    /// Reports to the I'm-Alive Task that no node can answer its alarm, if no other node within
    /// reach has a component. That is known, and not guessed from silence.
    pub(super) fn tell_alone(&self) {
        let is_alone = || self.supervision.running().iter().all(|peer| self.cut.has(peer));
        if let Some(im_alive) = &self.im_alive
            && self.component.is_none()
            && !self.starts.has_given_up()
            && is_alone()
        {
            im_alive.handle_alone();
        }
    }

    /// Reaps the component of this incarnation, and returns how it has ended; none if it is not the
    /// present one.
    pub(super) fn bury_component(&mut self, incarnation: Incarnation) -> Option<End> {
        let is_it = |component: &mut StartedComponent| component.incarnation == incarnation;
        let mut component = self.component.take_if(is_it)?;
        self.past = None;
        self.watch.handle_ended(self.rank);
        let status = component.spawned.child.wait();
        let was_killed = status.as_ref().is_ok_and(|status| status.signal() == Some(KILLED));
        let has_finished = component.is_program
            && status.as_ref().is_ok_and(|it| self.note_program_ended(&component, *it));
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        self.note(self.rank, What::Ended { incarnation: incarnation.0, status });
        self.bootstrap.retract(incarnation);
        self.supervision.handle_ended();
        self.clients.refuse_pending(&Refused::ComponentLost);
        self.clients.handle_component_gone();
        self.lost_at_ns.get_or_insert(now_ns());
        // A program that does not join is no better at once.
        let was_killed = was_killed && component.failure.is_none();
        if let Some((cause, cure)) = component.failure {
            self.note_failed(cause, cure);
        }
        Some(match was_killed {
            _ if has_finished => End::Finished,
            true => End::Killed,
            false => End::Failed,
        })
    }

    /// Everything below the supervisor ends, and the next boot begins once the component has ended.
    pub(super) fn reboot(&mut self) {
        self.im_alive = None;
        self.note(self.rank, What::Reborn);
        self.tasks.restart_all(now_ns());
        self.starts.handle_reboot();
        self.take_steps();
    }

    /// Sends the component what has changed at the tasks.
    pub(super) fn tell_changes(&mut self) {
        for (task, notices) in self.tasks.take_awaited_notices() {
            self.tell(&ToComponent::Notices { task, notices }, &[]);
        }
        self.tasks.note_errors();
        let has_entered = self.component.as_ref().is_some_and(|component| component.entered);
        // The history of earlier boots is not overwritten before it is known.
        if !has_entered || self.tasks.is_learning() {
            return;
        }
        for change in self.tasks.take_changes() {
            self.tell(&ToComponent::Change(change), &[]);
        }
    }

    /// Hands a frame or an entry of `peer` to its receiver.
    pub(super) fn handle_datagram(&mut self, peer: Peer, datagram: Datagram) {
        if self.cut.has(peer) {
            return;
        }
        match datagram.to {
            DatagramPort::ImAliveTask => match &self.im_alive {
                Some(im_alive) => im_alive.handle_datagram(Rank(peer.0), datagram.bytes.0),
                None => self.refusals.count(BETWEEN_LIVES),
            },
            DatagramPort::Chronicle => self.handle_evidence(peer, &datagram.bytes.0),
            DatagramPort::Script => self.handle_script_frame(peer, &datagram.bytes.0),
            DatagramPort::Component => {
                if self.component.as_ref().is_some_and(|it| it.entered && it.outgoing.is_crowded())
                {
                    self.refusals.count(LINK_FULL);
                } else if self.component.as_ref().is_some_and(|component| component.entered) {
                    self.tell(&ToComponent::Datagram { from: peer.0, bytes: datagram.bytes }, &[]);
                } else {
                    self.refusals.count(NOT_ENTERED);
                }
            }
        }
    }

    /// Sends the component's frames to I'm-Alive Tasks.
    pub(super) fn post_datagrams(&mut self, to: &[u16], bytes: Payload) {
        let datagram = Datagram { to: DatagramPort::ImAliveTask, bytes };
        for rank in to {
            if *rank == self.rank {
                // It sends one thing only to its own task: the order to watch it.
                self.starts.handle_watched();
                self.supervision.handle_watched();
                if let Some(im_alive) = &self.im_alive {
                    im_alive.handle_datagram(Rank(*rank), datagram.bytes.0.clone());
                }
            } else if !self.cut.has(Peer(*rank)) {
                self.datagrams.send(Peer(*rank), &datagram);
            }
        }
    }

    /// Resets another node, by decision of this one, which is the manager.
    pub(super) fn reset_node(&mut self, node: u16, boot: u32) {
        let outcome = self.reset.reset(Rank(node), Incarnation(boot));
        let possible = outcome == ResetOutcome::Ordered;
        self.note(node, What::ResetOrdered { boot, possible });
    }

    /// Notes a fault in the chronicle. A partition cuts every transport of the node, the
    /// supervisor's too, and outlives the component.
    pub(super) fn note_fault(&mut self, fault: &Fault) {
        match fault {
            Fault::Partition { from } => {
                for peer in from {
                    self.cut_off.insert(Peer(*peer));
                }
            }
            Fault::Mend { with } => with.iter().for_each(|peer| self.cut_off.remove(Peer(*peer))),
            Fault::Heal => self.cut_off = PeerSet::EMPTY,
            Fault::Hang | Fault::Stall { .. } | Fault::Silence | Fault::Equivocate => {}
        }
        self.cut.set(self.cut_off);
        let struck = What::Injected { fault: fault.to_string() };
        self.note(self.rank, struck);
        if let Fault::Partition { from } = fault {
            let cut = What::Injected { fault: format!("node {} does not reach it", self.rank) };
            from.iter().for_each(|peer| self.note(*peer, cut.clone()));
        }
    }

    /// Cuts a component that was just started off from the same peers as its predecessor.
    pub(super) fn tell_cut(&mut self) {
        if self.cut_off.is_empty() {
            return;
        }
        let from = self.cut_off.iter().map(|peer| peer.0).collect();
        let what = Want::Inject(Fault::Partition { from });
        // No client waits for the answer.
        let ticket = Ticket { client: SUPERVISOR, id: 0 };
        self.tell(&ToComponent::Request { ticket, what }, &[]);
    }
}
