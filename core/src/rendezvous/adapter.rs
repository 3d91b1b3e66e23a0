//! The adapter: both sides of the table, the lanes to the peers, and the caller.

use super::config::{RendezvousConfig, RendezvousRegions};
use super::ends::Ends;
use super::key::Key;
use super::mutants::FREED_ON_SUSPICION;
use super::outcome::{
    Draft, Expect, HandOver, LandedPart, MessageRejects, OfferError, OfferId, PartWanted, Place,
    ReceiveError, RendezvousEvent, RequestId, Tensor, UnknownRequest,
};
use super::pool::Pool;
use super::source::MESSAGE_LEN_MAX;
use crate::decision::{Decision, Removals, RemoveError};
use crate::fabric::{Completion, Fabric, Memory, PostError};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::lane::{LaneReader, LaneWriter, SendError};
use crate::time::Instant;
use crate::wire::rendezvous::{Shape, Status};

/// Messages of one peer that a poll handles, and that it sends to one peer.
const BATCH: usize = 16;

#[derive(Clone, Copy, Debug, Hash)]
struct Lanes {
    writer: LaneWriter,
    reader: LaneReader,
}

/// The rendezvous of one node: up to `PEERS` members, `SLOTS` requests, offers and waiters each.
///
/// The caller polls, hands in completions, and takes events; nothing waits.
#[derive(Clone, Debug, Hash)]
pub struct Adapter<const PEERS: usize, const SLOTS: usize> {
    config: RendezvousConfig,
    regions: RendezvousRegions,
    incarnation: Incarnation,
    me: Peer,
    live: PeerSet,
    removals: Removals<PEERS>,
    lanes: [Option<Lanes>; PEERS],
    /// Those that are admitted.
    reachable: PeerSet,
    ends: Ends<PEERS, SLOTS>,
    turn: Turn,
}

/// Which peer and which request are served first. It decides no promise, so that two states that
/// differ in nothing else are one to the explorer.
#[derive(Clone, Copy, Debug, Default)]
struct Turn(u16);

impl core::hash::Hash for Turn {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

impl<const PEERS: usize, const SLOTS: usize> Adapter<PEERS, SLOTS> {
    /// The rendezvous of `fabric.me()` in this incarnation; `boot` is what keys may name. No peer
    /// is reachable before [`Self::handle_admitted`].
    ///
    /// # Panics
    /// When the configuration is larger than `PEERS` or `SLOTS`.
    #[must_use]
    pub fn new(
        fabric: &impl Fabric,
        config: RendezvousConfig,
        regions: RendezvousRegions,
        (incarnation, boot): (Incarnation, u32),
    ) -> Self {
        let sizes = config.sizes();
        assert!(usize::from(sizes.peers) <= PEERS, "more members than PEERS");
        assert!(usize::from(config.slots()) <= SLOTS, "more slots than SLOTS");
        Self {
            config,
            regions,
            incarnation,
            me: fabric.me(),
            live: PeerSet::first(usize::from(sizes.peers)),
            removals: Removals::default(),
            lanes: [const { None }; PEERS],
            reachable: PeerSet::EMPTY,
            ends: Ends::new(config, regions, boot),
            turn: Turn::default(),
        }
    }

    /// `peer` is about to be admitted in its incarnation `theirs`: begins new lanes with it. Comes
    /// before [`Fabric::admit`], since it clears what the peer may write. One that was removed is a
    /// member again: what is admitted then is of a later epoch, and the epochs before that are
    /// removed ([`Self::remove`]).
    pub fn prepare(&mut self, fabric: &impl Fabric, peer: Peer, theirs: Incarnation) {
        if peer == self.me || peer.0 >= self.config.sizes().peers {
            return;
        }
        self.live.insert(peer);
        // Checked by RendezvousConfig::new.
        let Ok(config) = self.config.lanes() else { return };
        let (at, mine) = (self.regions.lanes, self.incarnation);
        let reader = LaneReader::new(fabric, config, at, mine, (peer, theirs));
        let writer = LaneWriter::new(fabric, config, at, mine, (peer, theirs));
        self.lanes[peer.index()] = Some(Lanes { writer, reader });
    }

    /// `peer` is admitted: messages for it are sent.
    pub fn handle_admitted(&mut self, peer: Peer) {
        if peer != self.me && self.live.contains(peer) {
            self.reachable.insert(peer);
        }
    }

    /// The incarnation of `peer` is fenced (RZ-15): what it was asked ends, what it was lent is
    /// offered again.
    pub fn handle_fenced(&mut self, peer: Peer) {
        if peer == self.me || peer.0 >= self.config.sizes().peers {
            return;
        }
        self.reachable.remove(peer);
        self.lanes[peer.index()] = None;
        self.ends.source.handle_fenced(peer);
        self.ends.destination.handle_fenced(peer);
    }

    /// Removes epochs of a member by decision: fences it, and ends everything with it. Nothing
    /// happens where those epochs are removed already: a later one may be admitted.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    pub fn remove(
        &mut self,
        fabric: &mut impl Fabric,
        decision: Decision,
    ) -> Result<(), RemoveError> {
        let Decision { removed: peer, last, .. } = decision;
        if !self.counts(peer, last) {
            return Ok(());
        }
        // First: what was lent to the peer is free only when it cannot read any more.
        self.removals.execute(fabric, decision, self.config.sizes().peers)?;
        self.live.remove(peer);
        self.handle_fenced(peer);
        self.ends.destination.handle_removed(peer);
        Ok(())
    }

    /// Whether an epoch of `peer` up to `last` is not removed yet.
    #[must_use]
    pub fn counts(&self, peer: Peer, last: Incarnation) -> bool {
        self.removals.counts(peer, last)
    }

    /// The members that are not removed, and those that have come back.
    #[must_use]
    pub const fn live(&self) -> PeerSet {
        self.live
    }

    /// Memory for a value of this shape; of a part, for `bytes` of it.
    ///
    /// # Errors
    /// [`OfferError`].
    pub fn reserve(&mut self, shape: Shape, bytes: u64) -> Result<Draft, OfferError> {
        self.ends.source.reserve(Some(shape), bytes)
    }

    /// Gives the memory of a value back that is not sent.
    #[expect(clippy::needless_pass_by_value, reason = "the draft ends here")]
    pub fn discard(&mut self, draft: Draft) {
        self.ends.source.discard(&draft);
    }

    /// Sends the value of `draft` under `key`: it lies in the table of this node until its receiver
    /// has it (RZ-5).
    ///
    /// # Errors
    /// [`OfferError`] and the draft.
    pub fn send(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        (key, place): (&Key, Place),
        draft: Draft,
    ) -> Result<OfferId, (OfferError, Draft)> {
        if let Err(why) = self.check_name(key, place) {
            return Err((why, draft));
        }
        let stored = self.ends.source.store(fabric, &draft, (key, place));
        self.speak(fabric, now);
        stored.ok_or((OfferError::BadShape, draft))
    }

    /// Sends `bytes`: reserves, copies, sends.
    ///
    /// # Errors
    /// [`OfferError`]; nothing was kept.
    pub fn send_bytes(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        name: (&Key, Place),
        (shape, bytes): (Shape, &[u8]),
    ) -> Result<OfferId, OfferError> {
        let len = bytes.len() as u64;
        let is_whole = name.1.parts == 1;
        if (is_whole && len != shape.bytes()) || len > shape.bytes() {
            return Err(OfferError::BadShape);
        }
        let draft = self.reserve(shape, len)?;
        if len > 0 {
            fabric.memory().copy_in(draft.at.region, draft.at.offset, bytes);
        }
        self.send(fabric, now, name, draft).map_err(|(why, draft)| self.dropped(why, draft))
    }

    /// Sends a dead value: its receiver learns that there is none.
    ///
    /// # Errors
    /// [`OfferError`].
    pub fn send_dead(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        name: (&Key, Place),
    ) -> Result<OfferId, OfferError> {
        let draft = self.ends.source.reserve(None, 0)?;
        self.send(fabric, now, name, draft).map_err(|(why, draft)| self.dropped(why, draft))
    }

    /// Sends a value that lies outside of this memory, by `token`: it takes a slot and no memory,
    /// and its receiver fetches it ([`Self::poll_hand_over`]): from the host of both ends (RZ-18),
    /// or in parts (RZ-3), which this node lends ([`Self::poll_wanted`]). The token must name no
    /// other value for as long as this incarnation runs.
    ///
    /// # Errors
    /// [`OfferError`].
    pub fn hand_over(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        (key, place): (&Key, Place),
        value: (Shape, u64),
    ) -> Result<OfferId, OfferError> {
        self.check_name(key, place)?;
        if place.parts != 1 {
            return Err(OfferError::BadShape);
        }
        let stored = self.ends.source.store_elsewhere(value, (key, place));
        self.speak(fabric, now);
        stored.ok_or(OfferError::Full)
    }

    fn dropped(&mut self, why: OfferError, draft: Draft) -> OfferError {
        self.discard(draft);
        why
    }

    fn check_name(&self, key: &Key, place: Place) -> Result<(), OfferError> {
        let is_boot = key.boot().is_none_or(|boot| boot == self.ends.boot());
        let is_peer = key.destination().0 < self.config.sizes().peers;
        if key.source() != self.me || !is_boot || !is_peer {
            return Err(OfferError::NotMine);
        }
        if place.part >= place.parts {
            return Err(OfferError::BadShape);
        }
        match self.ends.end_of(place.step) {
            None => Ok(()),
            Some(Status::Aborted) => Err(OfferError::Aborted),
            Some(_) => Err(OfferError::StepOver),
        }
    }

    /// Asks for the value of `key`, which may be sent earlier or later. Ends at `deadline` at the
    /// latest ([`RendezvousEvent::Ended`]).
    ///
    /// # Errors
    /// [`ReceiveError`]; nothing was begun.
    pub fn receive(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        (key, place): (&Key, Place),
        (expect, deadline): (Expect, Instant),
    ) -> Result<RequestId, ReceiveError> {
        if key.destination() != self.me || key.source().0 >= self.config.sizes().peers {
            return Err(ReceiveError::NotMine);
        }
        if place.part >= place.parts {
            return Err(ReceiveError::NoPart);
        }
        if !self.live.contains(key.source()) {
            return Err(ReceiveError::PeerGone);
        }
        match self.ends.end_of(place.step) {
            None => {}
            Some(Status::Aborted) => return Err(ReceiveError::Aborted),
            Some(_) => return Err(ReceiveError::StepOver),
        }
        let name = (key, place);
        let request = self.ends.destination.receive(name, expect, deadline);
        self.speak(fabric, now);
        request.ok_or(ReceiveError::Full)
    }

    /// Ends a receive by order; one that has ended stays as it is.
    ///
    /// # Errors
    /// [`UnknownRequest`].
    pub fn cancel(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        request: RequestId,
    ) -> Result<(), UnknownRequest> {
        self.ends.destination.cancel(request)?;
        self.speak(fabric, now);
        Ok(())
    }

    /// The value of a receive that ended with one, until it is released.
    #[must_use]
    pub fn tensor(&self, request: RequestId) -> Option<Tensor> {
        self.ends.destination.tensor(request)
    }

    /// The caller needs the value no more: its memory may be used again.
    ///
    /// # Errors
    /// [`UnknownRequest`].
    pub fn release(&mut self, request: RequestId) -> Result<(), UnknownRequest> {
        self.ends.destination.release(request)
    }

    /// Aborts a step (RZ-7): receives of it end so, here and at the peers that wait, and its values
    /// are dropped. The first end of a step stands.
    pub fn abort(&mut self, step: i64) {
        self.ends.end_step(step, Status::Aborted);
    }

    /// Cleans up a step: as [`Self::abort`], with another outcome.
    pub fn cleanup(&mut self, step: i64) {
        self.ends.end_step(step, Status::StepOver);
    }

    /// Cleans up every step that has anything here.
    pub fn cleanup_all(&mut self) {
        while let Some(step) = self.ends.any_step() {
            self.cleanup(step);
        }
    }

    /// Makes all progress that is possible now. Never waits.
    #[inline(never)]
    pub fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        self.turn.0 = self.turn.0.wrapping_add(1);
        self.hear(fabric, now);
        self.handle_timeout(now);
        self.ends.destination.read(fabric, self.turn.0);
        self.ends.source.write(fabric, self.turn.0);
        self.speak(fabric, now);
    }

    /// Ends what has passed its deadline.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ends.source.handle_timeout(now);
        self.ends.destination.handle_timeout(now);
    }

    /// When to poll again if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.ends.source.next_deadline(), self.ends.destination.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Continues the request that `completion` belongs to; ignores other completions.
    pub fn handle_completion(&mut self, fabric: &impl Fabric, completion: &Completion) {
        self.ends.destination.handle_completion(fabric, completion);
        self.ends.source.handle_completion(completion);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<RendezvousEvent> {
        self.ends.destination.poll_event().or_else(|| self.ends.source.poll_event())
    }

    /// Whether [`Self::poll_event`] returns one.
    #[must_use]
    pub const fn has_event(&self) -> bool {
        self.ends.destination.has_event() || self.ends.source.has_event()
    }

    /// A value that the caller must fetch from the host; each once (RZ-18).
    pub fn poll_hand_over(&mut self) -> Option<HandOver> {
        self.ends.destination.poll_hand_over()
    }

    /// The caller has what [`Self::poll_hand_over`] named, and the receive ends with a value; or it
    /// cannot have it, and the value stays at its source.
    ///
    /// # Errors
    /// [`UnknownRequest`]: the receive has ended meanwhile, and the value is not its.
    pub fn handle_handed_over(
        &mut self,
        request: RequestId,
        is_there: bool,
    ) -> Result<(), UnknownRequest> {
        self.ends.destination.handle_handed_over(request, is_there)
    }

    /// What [`Self::poll_hand_over`] named comes in parts: each is polled ([`Self::poll_part`]) and
    /// released, and with the last one the receive ends with a value; or it ends as one of them.
    ///
    /// # Errors
    /// [`UnknownRequest`]: the receive has ended meanwhile, or its value comes so already.
    pub fn fetch_parts(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        request: RequestId,
    ) -> Result<(), UnknownRequest> {
        self.ends.destination.fetch_parts(request)?;
        self.speak(fabric, now);
        Ok(())
    }

    /// The next part that has landed, in any order; each once.
    pub fn poll_part(&mut self) -> Option<LandedPart> {
        self.ends.destination.poll_part()
    }

    /// Whether [`Self::poll_part`] returns one.
    #[must_use]
    pub const fn has_part(&self) -> bool {
        self.ends.destination.has_part()
    }

    /// The next part of a value of this node that a peer fetches in parts; none at the end of the
    /// list. It is in the list until it is lent, or its receive has ended.
    pub fn poll_wanted(&mut self) -> Option<PartWanted> {
        self.ends.source.poll_wanted()
    }

    /// Lends the bytes of a part to the receive that wants it.
    ///
    /// # Errors
    /// [`OfferError`]; the receive waits on. `NoSpace` passes when a part that is lent is consumed.
    pub fn lend_part(
        &mut self,
        fabric: &mut impl Fabric,
        now: Instant,
        wanted: &PartWanted,
        bytes: &[u8],
    ) -> Result<(), OfferError> {
        self.ends.source.lend_part(fabric, wanted, bytes)?;
        self.speak(fabric, now);
        Ok(())
    }

    /// What was dropped of the peers' messages.
    #[must_use]
    pub const fn rejects(&self) -> MessageRejects {
        self.ends.rejects
    }

    /// The pool of the values that this node sends.
    #[must_use]
    pub const fn offers(&self) -> &Pool {
        self.ends.source.pool()
    }

    /// The pool of the values that this node receives.
    #[must_use]
    pub const fn landings(&self) -> &Pool {
        self.ends.destination.pool()
    }

    /// Requests, offers and waiters that take a slot.
    #[must_use]
    pub const fn used(&self) -> [u16; 3] {
        [self.ends.destination.requests(), self.ends.source.offers(), self.ends.source.waiters()]
    }

    /// Bytes of receives that have ended and whose reads are out.
    #[must_use]
    pub fn quarantined(&self) -> u64 {
        self.ends.destination.quarantined()
    }

    fn in_turn(&self) -> impl Iterator<Item = Peer> + use<PEERS, SLOTS> {
        let (first, count) = (self.turn.0, self.config.sizes().peers);
        (0..count).map(move |ahead| Peer((first % count + ahead) % count))
    }

    fn hear(&mut self, fabric: &mut impl Fabric, now: Instant) {
        for peer in self.in_turn() {
            let Some(lanes) = &mut self.lanes[peer.index()] else { continue };
            lanes.reader.poll(fabric);
            // A peer that sends without pause does not keep the others waiting.
            for _ in 0..BATCH {
                if !lanes.reader.is_ready(fabric) {
                    break;
                }
                let Some(message) = lanes.reader.take(fabric) else { break };
                self.ends.handle_message(fabric, now, peer, message.payload);
            }
        }
    }

    /// Sends what is due. What a full lane refuses stays due, and costs no copy.
    fn speak(&mut self, fabric: &mut impl Fabric, now: Instant) {
        for peer in self.in_turn() {
            let due = self.ends.source.due().union(self.ends.destination.due());
            if due.contains(peer) && (peer == self.me || self.reachable.contains(peer)) {
                self.speak_to(fabric, now, peer);
            }
        }
    }

    // Not inlined: most polls have nothing to say.
    #[inline(never)]
    fn speak_to(&mut self, fabric: &mut impl Fabric, now: Instant, peer: Peer) {
        for _ in 0..BATCH {
            let said = if peer == self.me {
                // A value for this node itself: no lane, the same messages.
                let mut message = [0; MESSAGE_LEN_MAX];
                let next = self.ends.next_message(fabric, now, peer, &mut message);
                next.map(|(what, len)| {
                    self.ends.handle_message(fabric, now, peer, &message[..len]);
                    what
                })
            } else {
                let Some(lanes) = &mut self.lanes[peer.index()] else { return };
                let (ends, mut said) = (&self.ends, None);
                let sent = lanes.writer.send_made(fabric, |fabric, message| {
                    let (what, len) = ends.next_message(fabric, now, peer, message)?;
                    said = Some(what);
                    Some((u16::from(message[0]), len))
                });
                match sent {
                    Ok(_) => said,
                    Err(SendError::Post(PostError::Gone)) if FREED_ON_SUSPICION.is_planted() => {
                        return self.ends.source.handle_suspected(peer);
                    }
                    Err(SendError::Full | SendError::TooLong | SendError::Post(_)) => return,
                }
            };
            match said {
                Some(what) => self.ends.note_said(peer, what),
                None => return self.ends.note_all_said(peer),
            }
        }
    }
}
