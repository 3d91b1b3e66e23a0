//! The endpoint: all machines of one member over one fabric. Poll once, get events.
//!
//! ```text
//!   put, send ──▶ outboxes, lanes ──┐              ┌──▶ take, take_lane
//!                                   ├── fabric ────┤
//!   poll(now) ──▶ completions ──────┤   mailbox ◀──┘──▶ poll_event
//!         broadcast, machines ◀─────┘
//! ```
//!
//! The caller owns the loop: [`Endpoint::poll`] makes all progress that is possible and never
//! waits; the caller drains [`Endpoint::poll_event`] before the next `poll` and takes messages with
//! [`Endpoint::take`] and [`Endpoint::take_lane`]. [`Endpoint::poll_timeout`] says when to poll
//! again if no event comes before: the earliest deadline in the endpoint's wheel, which holds those
//! of the machines and of the owner ([`Endpoint::wake_at`]). The broadcast exists if the plan has
//! one ([`Plan::with_broadcast`]); see [`Endpoint::broadcast`]. So do groups and rendezvous
//! ([`Plan::with_groups`], [`Plan::with_rendezvous`]); an endpoint of the default type has no place
//! for them: see [`Machines`].
//!
//! The caller decides about membership: it calls [`Endpoint::fence`] when an incarnation of a peer
//! is removed and [`Endpoint::admit`] when the next one begins. Nothing is lost in this order: the
//! new incarnation creates its endpoint, which clears the work of the old one; then every other
//! member fences the old incarnation and admits the new one; then the new one admits them. A member
//! that is removed for good is removed from all machines by one call, [`Endpoint::remove`]. A
//! [`Member`] decides with the other members who that is, over the same lanes.
//!
//! ```
//! use weft_core::endpoint::{Endpoint, Event, Plan};
//! use weft_core::fabric::loopback::Net;
//! use weft_core::ids::{Incarnation, Peer};
//! use weft_core::time::{Duration, Instant};
//! use weft_core::{lane, mailbox};
//!
//! let sizes = mailbox::Config::new(2, 16, 64, Duration::from_millis(1))?;
//! let plan = Plan::new(sizes, lane::Config::new(2, 8, 64)?)?;
//! let net = Net::<2, 1024>::new(plan.layout().clone());
//!
//! let first = Incarnation(1);
//! let mut alice = Endpoint::<_, 16, 2>::new(net.endpoint(Peer(0), first), &plan, first);
//! let mut bob = Endpoint::<_, 16, 2>::new(net.endpoint(Peer(1), first), &plan, first);
//! alice.admit(Peer(1), first)?;
//! bob.admit(Peer(0), first)?;
//!
//! let now = Instant(0);
//! alice.put(Peer(1), 0, b"hello")?;
//! alice.poll(now); // the ticket
//! alice.poll(now); // the write
//! assert_eq!(alice.poll_event(), Some(Event::Put { to: Peer(1), count: 1, left: 0 }));
//!
//! bob.poll(now);
//! let message = bob.take(now).expect("it has landed");
//! assert_eq!((message.sender, message.payload), (Peer(0), &b"hello"[..]));
//! let receipt = message.receipt;
//! bob.release(receipt)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod event;
mod lanes;
mod machines;
mod member;
mod messages;
mod mutants;
mod plan;

pub use event::{Counters, Event, PutError};
pub use machines::{Machine, Machines, NoMachine};
pub use member::{Boots, FRAME_KIND, LANE_SLOTS_MIN, Member, MemberOutput};
pub use mutants::{MEMBER_MUTANTS, MUTANTS};
pub use plan::{Plan, PlanError};

use heapless::Deque;

use crate::fabric::{Completion, Fabric, FenceError, WorkId};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::lane::{LANE_WORK, is_pulse};
use crate::mailbox::{self, Mailbox, OUTBOX_WORK, OWNER_WORK, Outbox, PutEvent};
use crate::neb::{self, NEB_WORK, Neb};
use crate::time::{Duration, Instant};
use crate::wheel::{Key, NoSuchKey, Wheel};
use lanes::Lanes;
use mutants::{FAILED_FENCE_LEFT, FENCE_ERROR_IGNORED};

/// Deadlines are rounded up to multiples of this.
const TICK: Duration = Duration::from_micros(1);
/// The deadlines that an owner may keep in the wheel beside the machines' own.
pub const OWNER_TIMERS: u32 = 56;
/// The deadlines of the machines.
const MAILBOX: Key = Key(0);
const BROADCAST: Key = Key(1);
const MACHINES: Key = Key(2);
const FENCES: Key = Key(3);
const MACHINE_TIMERS: u32 = 8;
const TIMERS: usize = (MACHINE_TIMERS + OWNER_TIMERS) as usize;
/// Steps of the wheel in one poll; the rest is left to the next poll, which is due at once.
const WHEEL_BUDGET: u32 = 2 * TIMERS as u32;

/// How often a fence that failed is tried again.
const FENCE_EVERY: Duration = Duration::from_millis(100);

/// Completions handled by one poll.
const BATCH: usize = 16;
/// A poll makes at most one event for each completion, each outbox and each fence that failed
/// before; a fence makes one.
const EVENTS: usize = BATCH + 2 * PeerSet::CAPACITY;

/// The number of slots of one origin that an endpoint can vote on at a time.
pub const BROADCAST_DEPTH: usize = 16;

static_assertions::const_assert!(OUTBOX_WORK != OWNER_WORK);
static_assertions::const_assert!(NEB_WORK > OUTBOX_WORK && NEB_WORK > OWNER_WORK);
static_assertions::const_assert!(NEB_WORK > LANE_WORK);
static_assertions::const_assert!(OWNER_WORK != LANE_WORK && LANE_WORK != OUTBOX_WORK);

/// All machines of one member: up to `SLOTS` mailbox slots, up to `PEERS` peers, and those of `M`.
#[derive(Clone, Debug)]
pub struct Endpoint<F: Fabric, const SLOTS: usize, const PEERS: usize, M = Machines> {
    fabric: F,
    plan: Plan,
    incarnation: Incarnation,
    admitted: PeerSet,
    /// The peers whose fence has failed, and when it is tried again: at the next poll, if not
    /// known.
    unfenced: PeerSet,
    fence_at: Option<Instant>,
    mailbox: Mailbox<SLOTS, PEERS>,
    outboxes: [Outbox; PEERS],
    /// Outboxes whose write a full queue refused.
    unposted: PeerSet,
    /// Outboxes whose flush ended while it was posted, and whose event was not polled.
    ended: PeerSet,
    lanes: [Option<Lanes>; PEERS],
    /// The peer whose lane is read first, so that no lane starves another.
    lane_turn: usize,
    broadcast: Option<Neb<PEERS, BROADCAST_DEPTH>>,
    machines: M,
    events: Deque<Event, EVENTS>,
    /// Every deadline: the machines' and the owner's.
    wheel: Wheel<TIMERS>,
    /// The completions of one poll; a field, so that an empty poll writes nothing.
    done: [Completion; BATCH],
    counters: Counters,
}

impl<F: Fabric, const SLOTS: usize, const PEERS: usize, M: Machine + Default>
    Endpoint<F, SLOTS, PEERS, M>
{
    /// The endpoint of `fabric.me()` in its `incarnation`. Clears work that an earlier incarnation
    /// had under way, and continues with the messages in its mailbox. Admits itself and no peer.
    ///
    /// Until [`Self::handle_all_named`] it waits for each ticket, however long; call that at once
    /// where no process had this memory before.
    ///
    /// # Panics
    /// When the plan is larger than `SLOTS`, `PEERS` or [`BROADCAST_DEPTH`], or its broadcast is
    /// signed, for which there is `Endpoint::signing`.
    #[must_use]
    pub fn new(fabric: F, plan: &Plan, incarnation: Incarnation) -> Self {
        Self::assemble(fabric, plan, incarnation, Neb::attach)
    }

    /// As [`Self::new`], with a signed broadcast and the keys for it.
    ///
    /// # Panics
    /// When the plan is larger than `SLOTS`, `PEERS` or [`BROADCAST_DEPTH`], or its broadcast is
    /// not signed.
    #[cfg(feature = "signed")]
    #[must_use]
    pub fn signing(
        fabric: F,
        plan: &Plan,
        incarnation: Incarnation,
        keys: neb::Keys<PEERS>,
    ) -> Self {
        Self::assemble(fabric, plan, incarnation, |fabric, sizes, at| {
            Neb::attach_signed(fabric, sizes, at, keys)
        })
    }

    fn assemble(
        fabric: F,
        plan: &Plan,
        incarnation: Incarnation,
        attach: impl FnOnce(&F, neb::Config, neb::Regions) -> Neb<PEERS, BROADCAST_DEPTH>,
    ) -> Self {
        let me = fabric.me();
        let mut mailbox = Mailbox::attach(&fabric, plan.mailbox(), plan.mailbox_regions());
        mailbox.handle_admitted(me);
        let last = Peer(plan.layout().peers() - 1);
        let outboxes = core::array::from_fn(|peer| {
            let owner = Peer(u16::try_from(peer).unwrap_or(u16::MAX)).min(last);
            let regions = plan.mailbox_regions();
            let mut outbox = Outbox::new(&fabric, plan.mailbox(), regions, owner, incarnation);
            if owner != me {
                // Nothing is posted to a peer before it is admitted.
                outbox.lose();
            }
            outbox
        });
        let broadcast = plan.broadcast().map(|(sizes, at)| attach(&fabric, sizes, at));
        Self {
            fabric,
            plan: plan.clone(),
            incarnation,
            admitted: PeerSet::only(me),
            unfenced: PeerSet::EMPTY,
            fence_at: None,
            mailbox,
            outboxes,
            unposted: PeerSet::EMPTY,
            ended: PeerSet::EMPTY,
            lanes: [const { None }; PEERS],
            lane_turn: 0,
            broadcast,
            machines: M::default(),
            events: Deque::new(),
            wheel: Wheel::new(TICK),
            done: [Completion::NONE; BATCH],
            counters: Counters::default(),
        }
    }

    /// Which endpoint this is.
    pub fn me(&self) -> Peer {
        self.fabric.me()
    }

    /// Its incarnation.
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The peers that may reach this endpoint and are reachable, itself included.
    pub const fn admitted(&self) -> PeerSet {
        self.admitted
    }

    /// The peers whose fence has failed and is tried again. They may still write here.
    pub const fn unfenced(&self) -> PeerSet {
        self.unfenced
    }

    /// The counters of this incarnation.
    pub fn counters(&self) -> Counters {
        let lanes = self.lanes.iter().flatten();
        Counters {
            mailbox: self.mailbox.counters(),
            lane_failures: lanes.map(|lane| lane.reader.checksum_failures()).sum(),
            ..self.counters
        }
    }

    /// The counters of the owner's side of the mailbox.
    #[inline]
    pub const fn mailbox_counters(&self) -> mailbox::Counters {
        self.mailbox.counters()
    }

    /// Every sender that may still write into the own mailbox is admitted or fenced; before, no
    /// ticket is questioned (see
    /// [`Mailbox::handle_all_named`]).
    pub const fn handle_all_named(&mut self) {
        self.mailbox.handle_all_named();
    }

    /// Messages in the own mailbox that were not released.
    pub fn owed(&self) -> u32 {
        self.mailbox.owed()
    }

    /// The fabric, for operations outside the port.
    pub const fn fabric(&mut self) -> &mut F {
        &mut self.fabric
    }

    /// Admits `peer` in its `incarnation`, and begins to exchange messages with it.
    ///
    /// # Errors
    /// [`FenceError`]; the peer is not admitted. [`FenceError::NotReady`] if an incarnation of it
    /// is admitted and not fenced: nothing changes.
    pub fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.check_other(peer)?;
        if self.admitted.contains(peer) {
            // The ring of its lane is cleared below, and must not be in use.
            return Err(FenceError::NotReady);
        }
        let lanes = Lanes::begin(&self.fabric, &self.plan, self.incarnation, (peer, incarnation));
        self.machines.prepare(&self.fabric, peer, incarnation);
        self.fabric.admit(peer, incarnation)?;
        debug!("peer {} admitted in incarnation {}", peer.0, incarnation.0);
        self.lanes[peer.index()] = Some(lanes);
        self.admitted.insert(peer);
        self.mailbox.handle_admitted(peer);
        self.outboxes[peer.index()].readmit(&self.fabric);
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.handle_admitted(peer);
        }
        self.machines.handle_admitted(peer);
        Ok(())
    }

    /// Fences `peer`: its last incarnation can no longer change a byte here.
    ///
    /// # Errors
    /// [`FenceError`]; messages of the peer are refused all the same, but its tickets are still
    /// waited for. Polls try again every 100 ms, until it holds: [`Event::Fenced`].
    pub fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.check_other(peer)?;
        self.lanes[peer.index()] = None;
        self.machines.handle_fencing(peer);
        self.ended.remove(peer);
        if let Some(event) = self.outboxes[peer.index()].lose() {
            self.note(peer, event);
        }
        match self.fabric.fence(peer) {
            Err(_) if FENCE_ERROR_IGNORED.is_planted() => {}
            Err(error) => {
                self.unfenced.insert(peer);
                return Err(error);
            }
            Ok(()) => {}
        }
        debug!("peer {} fenced", peer.0);
        self.unfenced.remove(peer);
        self.admitted.remove(peer);
        self.mailbox.handle_fenced(peer);
        self.machines.handle_fenced(peer);
        Ok(())
    }

    /// Tries fences again that have failed.
    #[cold]
    fn fence_again(&mut self, now: Instant) {
        let due = *self.fence_at.get_or_insert(now.after(FENCE_EVERY));
        if now < due || FAILED_FENCE_LEFT.is_planted() {
            return;
        }
        for peer in self.unfenced.iter() {
            if self.fence(peer).is_ok() {
                self.push(Event::Fenced { peer });
            }
        }
        let is_left = !self.unfenced.is_empty();
        self.fence_at = is_left.then(|| now.after(FENCE_EVERY));
    }

    /// Refuses a peer that is not another member: no member fences itself.
    fn check_other(&self, peer: Peer) -> Result<(), FenceError> {
        if peer == self.me() || peer.0 >= self.plan.layout().peers() {
            Err(FenceError::UnknownPeer)
        } else {
            Ok(())
        }
    }

    /// Stages one message for `to` and starts to put everything staged.
    ///
    /// # Errors
    /// [`PutError`].
    #[inline]
    pub fn put(&mut self, to: Peer, kind: u16, payload: &[u8]) -> Result<(), PutError> {
        self.stage(to, kind, payload)?;
        self.flush(to)
    }

    /// Adds one message to the batch for `to`.
    ///
    /// # Errors
    /// [`PutError::Stage`], [`PutError::UnknownPeer`].
    #[inline(always)]
    pub fn stage(&mut self, to: Peer, kind: u16, payload: &[u8]) -> Result<(), PutError> {
        self.outbox(to)?.stage(kind, payload).map_err(PutError::Stage)
    }

    /// Starts to put the batch for `to`; exactly one event reports the outcome. Over a fabric that
    /// answers at once ([`Fabric::post_now`]) that event can be polled when this returns.
    ///
    /// # Errors
    /// [`PutError::Post`], [`PutError::UnknownPeer`]; no event will come.
    #[inline]
    pub fn flush(&mut self, to: Peer) -> Result<(), PutError> {
        if to.0 >= self.plan.layout().peers() {
            return Err(PutError::UnknownPeer);
        }
        let outbox = &mut self.outboxes[to.index()];
        outbox.flush(&mut self.fabric).map_err(PutError::Post)?;
        self.note_flush(to);
        Ok(())
    }

    /// As [`Self::flush`], but may return how many messages were put: in place of [`Event::Put`],
    /// for less. Any other outcome is an event. What had no slot is still staged
    /// ([`Outbox::staged`]). Drain [`Self::poll_event`] before: the event of an earlier flush is
    /// about earlier messages.
    ///
    /// # Errors
    /// As [`Self::flush`].
    #[inline(always)]
    pub fn flush_now(&mut self, to: Peer) -> Result<Option<u32>, PutError> {
        if to.0 >= self.plan.layout().peers() {
            return Err(PutError::UnknownPeer);
        }
        let outbox = &mut self.outboxes[to.index()];
        let put = outbox.flush_now(&mut self.fabric).map_err(PutError::Post)?;
        if let Some(count) = put {
            self.counters.put += u64::from(count);
        } else {
            self.note_flush(to);
        }
        Ok(put)
    }

    /// Notes whether an event or an unposted write of the flush to `to` is due.
    #[inline(never)]
    fn note_flush(&mut self, to: Peer) {
        let outbox = &self.outboxes[to.index()];
        if outbox.has_ended() {
            self.ended.insert(to);
        } else if outbox.is_unposted() {
            self.unposted.insert(to);
        }
    }

    /// The batch for `to`: its staged messages, and whether a put is under way.
    ///
    /// # Errors
    /// [`PutError::UnknownPeer`].
    #[inline]
    pub fn outbox(&mut self, to: Peer) -> Result<&mut Outbox, PutError> {
        if to.0 >= self.plan.layout().peers() {
            return Err(PutError::UnknownPeer);
        }
        Ok(&mut self.outboxes[to.index()])
    }

    /// The checksum of the fabric, CRC-32C.
    pub fn crc32c(&self, bytes: &[u8]) -> u32 {
        self.fabric.crc32c(bytes)
    }

    /// The longest message in bytes.
    pub const fn message_len(&self) -> u16 {
        self.plan.mailbox().message_len()
    }

    /// The broadcast, and the fabric that its calls take; `None` if the plan has no broadcast.
    pub const fn broadcast(&mut self) -> Option<(&mut Neb<PEERS, BROADCAST_DEPTH>, &mut F)> {
        match &mut self.broadcast {
            Some(broadcast) => Some((broadcast, &mut self.fabric)),
            None => None,
        }
    }

    /// Makes all progress that is possible now; returns how many completions were handled, and one
    /// more if flushes ended while they were posted. Never waits.
    ///
    /// # Panics
    /// When [`Self::poll_event`] was not drained since the last poll: a bug of the caller.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> usize {
        assert!(self.events.is_empty(), "drain poll_event before the next poll");
        if !self.unfenced.is_empty() {
            self.fence_again(now);
        }
        // First, so that reads which end while they are posted are judged in the same poll.
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.poll(&mut self.fabric, now);
        }
        self.machines.poll(&mut self.fabric, now);
        let count = self.fabric.poll(now, &mut self.done);
        if !self.unposted.is_empty() {
            self.post_again();
        }
        if count > 0 {
            self.handle_completions(now, count);
        }
        self.mailbox.poll(&mut self.fabric, now);
        // Expired deadlines need nothing but this poll. If time went back, the deadlines are still
        // ahead.
        if self.wheel.advance(now, WHEEL_BUDGET).is_ok() {
            while self.wheel.poll_expired().is_some() {}
        }
        count + usize::from(!self.ended.is_empty())
    }

    /// The next event, oldest first; those of flushes that ended while they were posted come last.
    #[inline(always)]
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let peer = self.ended.iter().next()?;
        self.ended.remove(peer);
        let event = self.outboxes[peer.index()].poll(&mut self.fabric)?;
        Some(self.counters.note(peer, event))
    }

    /// When to poll again if no event comes before: the earliest deadline of the machines
    /// and of [`Self::wake_at`], or a little sooner (see [`Wheel::next_deadline`]).
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let broadcast = self.broadcast.as_ref().and_then(Neb::poll_timeout);
        let (mailbox, machines) = (self.mailbox.poll_timeout(), self.machines.poll_timeout());
        let fences = (!self.unfenced.is_empty()).then(|| self.fence_at.unwrap_or(Instant(0)));
        let deadlines =
            [(MAILBOX, mailbox), (BROADCAST, broadcast), (MACHINES, machines), (FENCES, fences)];
        for (key, deadline) in deadlines {
            let kept = self.wheel.keep(key, deadline);
            debug_assert!(kept.is_ok(), "the machines have their keys");
        }
        self.wheel.next_deadline()
    }

    /// Sets a deadline of the owner in the endpoint's wheel, for [`Self::poll_timeout`]; `None`
    /// clears it. It ends with the first poll at or after it. `timer` is one of
    /// [`OWNER_TIMERS`].
    ///
    /// # Errors
    /// [`NoSuchKey`]; nothing changed.
    pub fn wake_at(&mut self, timer: u32, deadline: Option<Instant>) -> Result<(), NoSuchKey> {
        let key = MACHINE_TIMERS.checked_add(timer).ok_or(NoSuchKey)?;
        self.wheel.keep(Key(key), deadline)
    }

    #[inline(never)]
    fn post_again(&mut self) {
        for peer in core::mem::take(&mut self.unposted).iter() {
            let event = self.outboxes[peer.index()].poll(&mut self.fabric);
            self.note_progress(peer, event);
        }
    }

    /// Handles the first `count` of the completions that were polled.
    #[inline(never)]
    fn handle_completions(&mut self, now: Instant, count: usize) {
        for index in 0..count {
            let completion = self.done[index];
            self.handle_completion(now, &completion);
        }
    }

    #[inline]
    fn handle_completion(&mut self, now: Instant, completion: &Completion) {
        const GONE: u8 = WorkId::GONE.machine();
        match completion.id.machine() {
            OUTBOX_WORK => {
                let peer = completion.peer;
                let Some(outbox) = self.outboxes.get_mut(peer.index()) else {
                    return;
                };
                let event = outbox.handle_completion(&mut self.fabric, completion);
                self.note_progress(peer, event);
            }
            OWNER_WORK => self.mailbox.handle_completion(&mut self.fabric, completion),
            LANE_WORK => {
                if let Err(failure) = completion.outcome
                    && !is_pulse(completion.id)
                {
                    self.push(Event::LaneLost { peer: completion.peer, failure });
                }
            }
            NEB_WORK => {
                if let Some(broadcast) = &mut self.broadcast {
                    broadcast.handle_completion(&mut self.fabric, now, completion);
                }
            }
            GONE => {
                // A fence that came before has ended it for the caller.
                if self.admitted.contains(completion.peer) {
                    self.push(Event::Gone { peer: completion.peer });
                }
            }
            _ => self.machines.handle_completion(&self.fabric, completion),
        }
    }

    #[inline]
    fn note_progress(&mut self, peer: Peer, event: Option<PutEvent>) {
        match event {
            Some(event) => self.note(peer, event),
            None if self.outboxes[peer.index()].is_unposted() => self.unposted.insert(peer),
            None => {}
        }
    }

    fn note(&mut self, peer: Peer, event: PutEvent) {
        let event = self.counters.note(peer, event);
        self.push(event);
    }

    fn push(&mut self, event: Event) {
        let accepted = self.events.push_back(event);
        debug_assert!(accepted.is_ok(), "more events than completions, outboxes and fences");
    }
}

#[cfg(test)]
mod tests;
