//! One incarnation of a member: its endpoint, and what it was asked to do.
//!
//! The endpoint owns its fabric, and the world is the run's: an [`EndpointTurn`] lends the one to
//! the other.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::mem::swap;

use weft_core::endpoint::{self, Endpoint, FRAME_KIND, Plan};
use weft_core::fabric::Fabric;
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::Outcome;

use super::reluctant::Reluctant;
use super::{EndpointEvent, PEERS, SLOTS};
use crate::fabric::SimFabric;
use crate::mailbox::{Hand, MailboxEvent, Name, hand};
use crate::neb::{NebEvent, payload};
use crate::protocol::Seat;
use crate::world::World;

/// Messages that one outbox may keep.
const STAGED_MAX: usize = 12;
/// Taken messages that are held back, at most.
const HANDS_MAX: usize = 6;
/// How often a fence fails, at most.
const REFUSALS_MAX: u64 = 40;

/// The endpoint under test.
pub(crate) type TestEndpoint = Endpoint<Reluctant, SLOTS, PEERS>;

/// What a node knows of one peer.
#[derive(Clone, Debug, Default)]
struct Other {
    /// Which incarnation of it is admitted.
    admitted: Option<Incarnation>,
    /// The one to admit once the previous one is fenced.
    awaited: Option<Incarnation>,
    /// What is staged for its mailbox, and how many messages were made for it.
    staged: VecDeque<Name>,
    made: u32,
    /// Lane messages sent, and those that wait for room.
    sent: u32,
    pending: u32,
    /// How far its broadcasts are delivered.
    delivered: u64,
}

/// The endpoint of one incarnation.
#[derive(Clone, Debug)]
pub struct EndpointNode {
    me: Peer,
    incarnation: Incarnation,
    endpoint: TestEndpoint,
    others: Vec<Other>,
    /// Whose fence has failed and must be repeated.
    unfenced: PeerSet,
    /// Taken and not released.
    hands: VecDeque<Hand>,
    /// Broadcasts that were ordered and had no room yet, and how many were made.
    owed: u32,
    broadcast: u32,
    /// Frames of the DIR net that have arrived.
    frames: Vec<(Peer, Vec<u8>)>,
}

impl Hash for EndpointNode {
    /// Endpoints are not explored: no state is distinguished by its nodes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.me, self.incarnation).hash(state);
    }
}

impl EndpointNode {
    pub(crate) fn new<E>(plan: &Plan, seat: &mut Seat<'_, E>) -> Self {
        let (me, incarnation) = (seat.me(), seat.incarnation);
        let layout = seat.fabric.layout().clone();
        let mut fabric = Reluctant::new(SimFabric::new(World::untimed(layout, false), me));
        swap(seat.fabric.world(), fabric.world());
        let mut endpoint = Endpoint::new(fabric, plan, incarnation);
        // Nothing lands here that was posted to an earlier incarnation: the world bars it.
        endpoint.handle_all_named();
        swap(seat.fabric.world(), endpoint.fabric().world());
        Self {
            me,
            incarnation,
            endpoint,
            others: vec![Other::default(); usize::from(plan.layout().peers())],
            unfenced: PeerSet::EMPTY,
            hands: VecDeque::new(),
            owed: 0,
            broadcast: 0,
            frames: Vec::new(),
        }
    }

    /// What this node still has to do, if anything.
    pub(super) fn unfinished(&self) -> Option<String> {
        if let Some(other) = self.others.iter().find(|other| !other.staged.is_empty()) {
            return Some(format!("keeps {:?}", other.staged));
        }
        if let Some(other) = self.others.iter().find(|other| other.pending > 0) {
            return Some(format!("waits for room: {} lane messages", other.pending));
        }
        if !self.unfenced.is_empty() {
            return Some(format!("has not fenced {:?}", self.unfenced));
        }
        if self.owed > 0 {
            return Some(format!("has no room for {} broadcasts", self.owed));
        }
        let owed = self.endpoint.owed();
        (owed > 0).then(|| format!("owes {owed} messages"))
    }

    /// How far the broadcasts of `origin` are delivered here.
    pub(super) fn delivered(&self, origin: Peer) -> u64 {
        self.others[origin.index()].delivered
    }

    /// Lends the world to the endpoint until the turn is over. Its events are recorded as `of`
    /// says.
    pub(crate) fn turn<'t, 'w, E>(
        &'t mut self,
        seat: &'t mut Seat<'w, E>,
        of: fn(EndpointEvent) -> E,
    ) -> EndpointTurn<'t, 'w, E> {
        swap(seat.fabric.world(), self.endpoint.fabric().world());
        EndpointTurn { node: self, seat, of }
    }
}

/// A node while it acts in the world.
pub(crate) struct EndpointTurn<'t, 'w, E> {
    node: &'t mut EndpointNode,
    seat: &'t mut Seat<'w, E>,
    of: fn(EndpointEvent) -> E,
}

impl<E> Drop for EndpointTurn<'_, '_, E> {
    fn drop(&mut self) {
        swap(self.seat.fabric.world(), self.node.endpoint.fabric().world());
    }
}

impl<E> EndpointTurn<'_, '_, E> {
    /// Adds to the history what the node observes. A process that is dead records nothing.
    pub(crate) fn record(&mut self, event: E) {
        if !self.is_dead() {
            self.seat.records.push(event);
        }
    }

    /// Whether nothing that it does has any effect.
    pub(crate) fn is_dead(&mut self) -> bool {
        self.node.endpoint.fabric().memory().fuse.is_burnt()
    }

    fn note(&mut self, event: EndpointEvent) {
        self.record((self.of)(event));
    }

    fn mailed(&mut self, event: MailboxEvent) {
        self.note(EndpointEvent::Mailbox(event));
    }

    /// The endpoint, in the world.
    pub(crate) const fn endpoint(&mut self) -> &mut TestEndpoint {
        &mut self.node.endpoint
    }

    /// The frames of the DIR net that have arrived.
    pub(crate) fn take_frames(&mut self) -> Vec<(Peer, Vec<u8>)> {
        std::mem::take(&mut self.node.frames)
    }

    fn other(&mut self, peer: Peer) -> &mut Other {
        &mut self.node.others[peer.index()]
    }

    /// The cluster has decided that the admitted incarnation of `peer` has ended.
    pub(crate) fn fence(&mut self, peer: Peer) {
        self.begin_fence(peer, REFUSALS_MAX);
        self.try_fence(peer);
    }

    /// `peer` is fenced next, which may fail, less than `refusals_max` times.
    pub(crate) fn begin_fence(&mut self, peer: Peer, refusals_max: u64) {
        let refusals = self.seat.draw(2) * self.seat.draw(refusals_max);
        self.node.endpoint.fabric().refuse(refusals);
        let other = self.other(peer);
        (other.awaited, other.admitted, other.pending) = (None, None, 0);
    }

    fn try_fence(&mut self, peer: Peer) {
        match self.node.endpoint.fence(peer) {
            Ok(()) => self.finish_fence(peer),
            Err(_) => self.node.unfenced.insert(peer),
        }
    }

    /// `peer` is fenced.
    pub(crate) fn finish_fence(&mut self, peer: Peer) {
        self.node.unfenced.remove(peer);
        self.mailed(MailboxEvent::Fenced(peer));
    }

    /// Repeats the fences that have failed.
    pub(crate) fn retry_fences(&mut self) {
        for peer in self.node.unfenced.iter() {
            self.try_fence(peer);
        }
    }

    /// The next incarnation that waited for the fence of one before, if that holds.
    pub(crate) fn take_awaited(&mut self) -> Option<(Peer, Incarnation)> {
        let admitted = self.node.endpoint.admitted();
        let others = (0..).map(Peer).zip(&mut self.node.others);
        let mut fenced = others.filter(|(peer, _)| !admitted.contains(*peer));
        fenced.find_map(|(peer, other)| Some((peer, other.awaited.take()?)))
    }

    /// That incarnation of `peer` has begun; whether it is admitted now.
    pub(crate) fn admit(&mut self, (peer, incarnation): (Peer, Incarnation)) -> bool {
        if self.node.endpoint.admitted().contains(peer) {
            self.other(peer).awaited = Some(incarnation);
            return false;
        }
        self.node.endpoint.admit(peer, incarnation).expect("a later incarnation is admitted");
        let other = self.other(peer);
        (other.admitted, other.sent, other.pending) = (Some(incarnation), 0, 0);
        self.mailed(MailboxEvent::Admitted(peer, incarnation));
        true
    }

    /// One round of the node's loop, behind [`Self::retry_fences`].
    pub(crate) fn step(&mut self) {
        self.drain_events();
        self.node.endpoint.poll(self.seat.now);
        self.drain_events();
        self.take();
        self.release();
        self.hear();
        self.take_broadcasts();
        if self.seat.is_ordered() {
            self.obey();
        }
        self.send();
        self.flush();
        self.send_broadcasts();
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.node.endpoint.poll_event() {
            match event {
                endpoint::Event::Put { to, count, left } => {
                    self.note_put(to, count);
                    assert_eq!(self.other(to).staged.len(), left as usize, "messages staged");
                }
                endpoint::Event::Lost { peer, unknown, .. } => self.lose(peer, unknown),
                endpoint::Event::Full { .. }
                | endpoint::Event::TicketUnknown { .. }
                | endpoint::Event::Gone { .. }
                | endpoint::Event::Fenced { .. }
                | endpoint::Event::LaneLost { .. } => {}
            }
        }
    }

    fn note_put(&mut self, to: Peer, count: u32) {
        let names: Vec<Name> = self.other(to).staged.drain(..count as usize).collect();
        names.into_iter().for_each(|name| self.mailed(MailboxEvent::Put(name)));
    }

    /// Of what was staged for `peer`, the first `unknown` are in doubt, and nothing is sent again.
    fn lose(&mut self, peer: Peer, unknown: u32) {
        let names = std::mem::take(&mut self.other(peer).staged);
        assert!(unknown as usize <= names.len(), "more in doubt than staged");
        for (place, name) in (0..).zip(names) {
            let event =
                if place < unknown { MailboxEvent::Unknown } else { MailboxEvent::Withdrawn };
            self.mailed(event(name));
        }
        self.node.endpoint.outbox(peer).expect("there is such a peer").discard();
    }

    fn take(&mut self) {
        for _ in 0..=self.seat.draw(3) {
            if self.node.hands.len() == HANDS_MAX {
                break;
            }
            let Some(message) = self.node.endpoint.take(self.seat.now) else { break };
            let (hand, event) = hand(&message);
            self.node.hands.push_back(hand);
            self.mailed(event);
        }
    }

    fn release(&mut self) {
        while !self.node.hands.is_empty() && self.seat.draw(4) < 3 {
            let which = self.seat.draw(self.node.hands.len() as u64) as usize;
            let Some((receipt, name)) = self.node.hands.remove(which) else { break };
            let released = self.node.endpoint.release(receipt);
            released.expect("a message that was taken can be released");
            if let Some(name) = name {
                self.mailed(MailboxEvent::Released(name));
            }
        }
    }

    fn hear(&mut self) {
        for _ in 0..PEERS {
            let Some(message) = self.node.endpoint.take_lane() else { break };
            let (sender, payload) = (message.sender, message.payload.to_vec());
            if message.kind == FRAME_KIND {
                self.node.frames.push((sender, payload));
                continue;
            }
            self.mailed(MailboxEvent::Heard { sender, payload });
        }
    }

    /// Carries out one order: a few messages for one mailbox or one lane, or a broadcast.
    fn obey(&mut self) {
        let peer = Peer(self.seat.draw(self.node.others.len() as u64) as u16);
        match self.seat.draw(3) {
            0 => self.node.owed += 1,
            1 if self.other(peer).admitted.is_some() => {
                self.other(peer).pending += 1 + self.seat.draw(3) as u32;
            }
            _ => {
                for _ in 0..=self.seat.draw(4) {
                    self.stage(peer);
                }
            }
        }
    }

    fn stage(&mut self, owner: Peer) {
        let from = (self.node.me, self.node.incarnation);
        let Other { staged, made, .. } = &mut self.node.others[owner.index()];
        let name = Name { from, to: (owner, Incarnation(0)), number: *made + 1 };
        let is_full = staged.len() == STAGED_MAX;
        if !is_full && self.node.endpoint.stage(owner, 7, &name.payload()).is_ok() {
            *made += 1;
            staged.push_back(name);
            self.mailed(MailboxEvent::Staged(name));
        }
    }

    fn flush(&mut self) {
        for owner in (0..self.node.others.len() as u16).map(Peer) {
            let outbox = self.node.endpoint.outbox(owner).expect("there is such a peer");
            if outbox.is_idle() && outbox.staged() > 0 {
                // What the fabric refuses stays staged for the next round. Both ways to learn of a
                // put.
                if outbox.staged().is_multiple_of(2) {
                    let _ = self.node.endpoint.flush(owner);
                } else if let Ok(Some(count)) = self.node.endpoint.flush_now(owner) {
                    self.note_put(owner, count);
                }
            }
        }
    }

    fn send(&mut self) {
        let from = (self.node.me, self.node.incarnation);
        for peer in (0..self.node.others.len() as u16).map(Peer) {
            while let Other { admitted: Some(incarnation), pending: 1.., sent, .. } =
                *self.other(peer)
            {
                let name = Name { from, to: (peer, incarnation), number: sent + 1 };
                if self.node.endpoint.send(peer, 7, &name.payload()).is_err() {
                    break;
                }
                let other = self.other(peer);
                (other.pending, other.sent) = (other.pending - 1, sent + 1);
                self.mailed(MailboxEvent::Sent(name));
            }
        }
    }

    fn send_broadcasts(&mut self) {
        let (me, incarnation) = (self.node.me, self.node.incarnation);
        loop {
            let (owed, number) = (self.node.owed, self.node.broadcast);
            let Some((neb, fabric)) = self.node.endpoint.broadcast() else { return };
            if owed == 0 || !neb.has_room() {
                return neb.flush(fabric);
            }
            let payload = payload(me, incarnation, number);
            let staged = neb.stage(fabric, u64::from(number), &payload);
            let seq = staged.expect("it has room, and the message fits");
            (self.node.owed, self.node.broadcast) = (owed - 1, number + 1);
            self.note(EndpointEvent::Broadcast(NebEvent::Broadcast { seq, payload }));
        }
    }

    fn take_broadcasts(&mut self) {
        for _ in 0..PEERS {
            if !self.take_broadcast() {
                break;
            }
        }
        let Some((neb, _)) = self.node.endpoint.broadcast() else { return };
        for (origin, other) in (0..).map(Peer).zip(&mut self.node.others) {
            // What an earlier incarnation delivered counts.
            other.delivered = neb.standing(origin).map_or(0, |standing| standing.delivered);
        }
    }

    fn take_broadcast(&mut self) -> bool {
        let Some((neb, fabric)) = self.node.endpoint.broadcast() else { return false };
        let event = match neb.take(fabric) {
            Some(Outcome::Delivered(message)) => {
                let payload = message.payload.to_vec();
                NebEvent::Delivered { origin: message.origin, seq: message.seq, payload }
            }
            Some(Outcome::Conflict(conflict)) => NebEvent::Conflict(conflict),
            None => return false,
        };
        self.note(EndpointEvent::Broadcast(event));
        true
    }
}
