//! The source's side of the table: offers, and waiters for values that are not there yet.
//!
//! ```text
//!   Reserved ──▶ Stored ──match──▶ Lent{to} ──BUFFER_IDLE(ok)──▶ Consumed ──polled──▶ free
//!                  ▲                  │
//!                  └── refused, cancelled, or the borrower's incarnation is fenced
//!
//! path write:   Stored ──match──▶ Asking{to} ─BUFFER_RESPONSE─▶ Writing ─all written─▶ Lent{to}
//!                 ▲  └──── the request has lent memory: WARM ────▲ │
//!                 └── cancelled, failed, fenced: once no write is out ┘
//! ```
//!
//! Of one name there are values or waiters, never both: a value that is stored meets the oldest
//! waiter at once, a waiter that comes meets the oldest stored value.

mod messages;
mod parts;
mod writing;

use super::config::{Digest, Path, RendezvousConfig, RendezvousRegions};
use super::key::Key;
use super::mutants::{FREED_ON_MATCH, PART_STORED, REFUSED_CONSUMED, WAITER_STAYS, WARM_TOO_SMALL};
use super::outcome::{Draft, MessageReject, OfferError, OfferId, Place, RendezvousEvent};
use super::pool::{Piece, Pool};
use super::slots::Slots;
use crate::fabric::{At, Fabric, Memory};
use crate::ids::{Peer, PeerSet};
use crate::time::{Duration, Instant};
use crate::wire::rendezvous::{HEAD_LEN, Handle, INLINE_LEN_MAX, Shape, Status};

pub(super) use writing::Loan;
use writing::{WriteEnd, Writing};

/// The longest message in bytes.
pub(super) const MESSAGE_LEN_MAX: usize = HEAD_LEN + INLINE_LEN_MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    key: Key,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Reserved,
    Stored,
    /// The borrower must lend memory to write it to.
    Asking {
        to: Peer,
        request: Handle,
        said: bool,
    },
    /// It is being written to the borrower.
    Writing {
        to: Peer,
        request: Handle,
        writing: Writing,
    },
    Lent {
        to: Peer,
        request: Handle,
        said: bool,
    },
    /// The receiver has it; the caller does not know yet.
    Consumed,
}

#[derive(Clone, Debug, Hash)]
struct Offer {
    phase: Phase,
    /// None while it is reserved.
    name: Option<Name>,
    /// None of a dead value.
    shape: Option<Shape>,
    bytes: u64,
    piece: Option<Piece>,
    offset: u32,
    digest: Option<u32>,
    /// What its host hands it over by, if it does.
    token: Option<u64>,
    order: u64,
    /// Its step is over: it is dropped when its borrower has done with it.
    over: bool,
    /// It is a part, and lies in this place for parts.
    place: Option<u8>,
}

#[derive(Clone, Debug, Hash)]
struct Waiter {
    from: Peer,
    request: Handle,
    name: Name,
    /// It asks for a part of the value that its peer is lent so.
    part_of: Option<Handle>,
    /// Memory that came with the request.
    warm: Option<Loan>,
    expires_at: Instant,
    order: u64,
}

/// Why a request gets no value; due until it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Refusal {
    generation: u16,
    status: Status,
}

/// Which message was handed out for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Offer(u16),
    Refusal(u16),
    Request(u16),
}

#[derive(Clone, Debug, Hash)]
pub(super) struct Source<const PEERS: usize, const SLOTS: usize> {
    config: RendezvousConfig,
    regions: RendezvousRegions,
    pool: Pool,
    offers: Slots<Offer, SLOTS>,
    waiters: Slots<Waiter, SLOTS>,
    /// By peer and the slot of its request: a request is refused at most once.
    refusals: [[Option<Refusal>; SLOTS]; PEERS],
    /// Writes that are out, by peer.
    out: [u8; PEERS],
    /// Peers for which a message may be due.
    due: PeerSet,
    next: u64,
    consumed: u16,
    parts: parts::Lent,
    /// V1 only: BUFFER_IDLE has come since the last write.
    is_idle_heard: bool,
}

impl Phase {
    /// Who has it, or gets it, and for which request.
    const fn borrower(self) -> Option<(Peer, Handle)> {
        match self {
            Self::Asking { to, request, .. }
            | Self::Writing { to, request, .. }
            | Self::Lent { to, request, .. } => Some((to, request)),
            Self::Reserved | Self::Stored | Self::Consumed => None,
        }
    }
}

impl Offer {
    /// Whether it fits into no message, and lies in the pool.
    fn is_long(&self, inline: u16) -> bool {
        self.shape.is_some() && self.token.is_none() && self.bytes > u64::from(inline)
    }
}

impl<const PEERS: usize, const SLOTS: usize> Source<PEERS, SLOTS> {
    pub(super) fn new(config: RendezvousConfig, regions: RendezvousRegions) -> Self {
        let sizes = config.sizes();
        Self {
            config,
            regions,
            pool: Pool::new(sizes.leaf_len, sizes.offer_leaves),
            offers: Slots::new(),
            waiters: Slots::new(),
            refusals: [[None; SLOTS]; PEERS],
            out: [0; PEERS],
            due: PeerSet::EMPTY,
            next: 0,
            consumed: 0,
            parts: parts::Lent::default(),
            is_idle_heard: false,
        }
    }

    pub(super) const fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) const fn waiters(&self) -> u16 {
        self.waiters.len()
    }

    pub(super) const fn offers(&self) -> u16 {
        self.offers.len()
    }

    pub(super) const fn due(&self) -> PeerSet {
        self.due
    }

    /// A slot, and memory for `bytes`; a dead value has none.
    pub(super) fn reserve(
        &mut self,
        shape: Option<Shape>,
        bytes: u64,
    ) -> Result<Draft, OfferError> {
        if !self.pool.could_hold(bytes) {
            return Err(OfferError::TooLong);
        }
        self.check_slots()?;
        let piece = match bytes {
            0 => None,
            _ => Some(self.pool.lend(bytes).ok_or(OfferError::NoSpace)?),
        };
        let offset = piece.map_or(0, |piece| self.pool.offset(piece));
        let handle = self.insert((shape, bytes), (piece, None), offset).ok_or(OfferError::Full)?;
        Ok(Draft { offer: handle, at: At { region: self.regions.offers, offset }, bytes })
    }

    /// Whether a whole value has a slot: those of parts are not taken.
    const fn check_slots(&self) -> Result<(), OfferError> {
        let wholes = self.offers.len() - self.parts.count();
        if wholes < self.config.sizes().slots { Ok(()) } else { Err(OfferError::Full) }
    }

    fn insert(
        &mut self,
        (shape, bytes): (Option<Shape>, u64),
        (piece, place): (Option<Piece>, Option<u8>),
        offset: u32,
    ) -> Option<Handle> {
        let offer = Offer {
            phase: Phase::Reserved,
            name: None,
            shape,
            bytes,
            piece,
            offset,
            digest: None,
            token: None,
            order: self.next_order(),
            over: false,
            place,
        };
        self.offers.insert(self.config.slots(), offer)
    }

    /// The host keeps the value, and hands it over by `token`: no memory of the pool is taken.
    pub(super) fn store_elsewhere(
        &mut self,
        (shape, token): (Shape, u64),
        (key, place): (&Key, Place),
    ) -> Option<OfferId> {
        self.check_slots().ok()?;
        let handle = self.insert((Some(shape), shape.bytes()), (None, None), 0)?;
        let offer = self.offers.at_mut(handle.slot)?;
        offer.token = Some(token);
        offer.phase = Phase::Stored;
        offer.name = Some(Name { key: key.clone(), place });
        self.settle(handle.slot);
        Some(OfferId(handle))
    }

    pub(super) fn discard(&mut self, draft: &Draft) {
        self.drop_offer(draft.offer.slot);
    }

    /// The value of `draft` is there, under that name.
    pub(super) fn store(
        &mut self,
        fabric: &impl Fabric,
        draft: &Draft,
        name: (&Key, Place),
    ) -> Option<OfferId> {
        self.fill(fabric, draft, name)?;
        self.settle(draft.offer.slot);
        Some(OfferId(draft.offer))
    }

    fn fill(
        &mut self,
        fabric: &impl Fabric,
        draft: &Draft,
        (key, place): (&Key, Place),
    ) -> Option<()> {
        let is_digested = self.config.sizes().digest == Digest::Crc32c;
        let digest = is_digested.then(|| digest(fabric, draft.at, draft.bytes));
        let offer = self.offers.get_mut(draft.offer).ok()?;
        offer.phase = Phase::Stored;
        offer.name = Some(Name { key: key.clone(), place });
        offer.digest = digest.filter(|_| offer.bytes > 0);
        Some(())
    }

    const fn next_order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A value that is stored meets the oldest waiter for it.
    fn settle(&mut self, slot: u16) {
        let Some(offer) = self.offers.at(slot) else { return };
        let waits =
            |waiter: &Waiter| waiter.part_of.is_none() && Some(&waiter.name) == offer.name.as_ref();
        let waiting = self.waiters.iter().filter(|(_, waiter)| waits(waiter));
        let oldest = waiting.min_by_key(|(_, waiter)| waiter.order).map(|(at, _)| at);
        let Some(waiter) = oldest.and_then(|at| self.waiters.remove_at(at)) else { return };
        self.lend(slot, (waiter.from, waiter.request), waiter.warm);
    }

    fn lend(&mut self, slot: u16, (to, request): (Peer, Handle), warm: Option<Loan>) {
        let sizes = self.config.sizes();
        let Some(offer) = self.offers.at_mut(slot) else { return };
        let is_written = sizes.path == Path::Write && offer.is_long(sizes.inline);
        let fits = |loan: &Loan| loan.bytes >= offer.bytes || WARM_TOO_SMALL.is_planted();
        offer.phase = match warm.filter(fits) {
            _ if !is_written => Phase::Lent { to, request, said: false },
            None => Phase::Asking { to, request, said: false },
            Some(Loan { at: into, .. }) => {
                Phase::Writing { to, request, writing: Writing::begin(into) }
            }
        };
        self.due.insert(to);
        if FREED_ON_MATCH.is_planted() {
            offer.piece.take().into_iter().for_each(|piece| self.pool.give_back(piece));
        }
    }

    /// A request of `from`: the oldest value of that name is lent, or it waits, `wait` at most.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        (from, request): (Peer, Handle),
        (key, place): (Key, Place),
        (wait, warm): (Duration, Option<Loan>),
    ) {
        let name = Name { key, place };
        let is_there = |offer: &Offer| {
            let is_stored = offer.phase == Phase::Stored && !offer.over;
            is_stored && offer.place.is_none() && offer.name.as_ref() == Some(&name)
        };
        let there = self.offers.iter().filter(|(_, offer)| is_there(offer));
        if let Some((slot, _)) = there.min_by_key(|(_, offer)| offer.order) {
            return self.lend(slot, (from, request), warm);
        }
        let (expires_at, order) = (now.after(wait), self.next_order());
        self.wait(Waiter { from, request, name, part_of: None, warm, expires_at, order });
    }

    /// A request waits, or is refused: each peer has a share, so that none takes the places of the
    /// others, and parts have theirs.
    fn wait(&mut self, waiter: Waiter) {
        let (from, request, sizes) = (waiter.from, waiter.request, self.config.sizes());
        let share = match waiter.part_of {
            Some(_) => self.config.parts_of_peer(),
            None => sizes.slots / sizes.peers,
        };
        let is_alike = |other: &Waiter| {
            other.from == from && other.part_of.is_some() == waiter.part_of.is_some()
        };
        let alike = self.waiters.iter().filter(|(_, other)| is_alike(other)).count();
        let has_room = alike < usize::from(share);
        if !has_room || self.waiters.insert(self.config.slots(), waiter).is_none() {
            self.refuse((from, request), Status::NoSpace);
        }
    }

    pub(super) fn refuse(&mut self, (to, request): (Peer, Handle), status: Status) {
        let of_peer = self.refusals.get_mut(to.index());
        let Some(place) = of_peer.and_then(|all| all.get_mut(usize::from(request.slot))) else {
            return;
        };
        *place = Some(Refusal { generation: request.generation, status });
        self.due.insert(to);
    }

    /// `from` has done with the value that it was lent.
    pub(super) fn handle_idle(
        &mut self,
        (from, request): (Peer, Handle),
        offer: Handle,
        status: Status,
    ) -> Result<(), MessageReject> {
        let lent = self.offers.get(offer)?;
        match lent.phase {
            Phase::Lent { to, .. } | Phase::Asking { to, .. } if to != from => {
                return Err(MessageReject::NotMine);
            }
            Phase::Lent { request: of, said: true, .. } if of == request => {}
            // It refuses what it would have to lend memory for.
            Phase::Asking { request: of, said: true, .. }
                if of == request && status != Status::Ok => {}
            Phase::Reserved
            | Phase::Stored
            | Phase::Asking { .. }
            | Phase::Writing { .. }
            | Phase::Lent { .. }
            | Phase::Consumed => return Err(MessageReject::Unexpected),
        }
        self.is_idle_heard = true;
        if status == Status::Ok || REFUSED_CONSUMED.is_planted() {
            self.consume(offer.slot);
        } else {
            self.take_back(offer.slot);
        }
        Ok(())
    }

    fn consume(&mut self, slot: u16) {
        self.drop_wanted(slot);
        let Some(offer) = self.offers.at_mut(slot) else { return };
        if offer.place.is_some() {
            return self.drop_offer(slot);
        }
        offer.phase = Phase::Consumed;
        self.consumed += 1;
        offer.piece.take().into_iter().for_each(|piece| self.pool.give_back(piece));
    }

    /// A lent value is stored again, or dropped if its step is over. A part is dropped: its receive
    /// has ended.
    fn take_back(&mut self, slot: u16) {
        self.drop_wanted(slot);
        let Some(offer) = self.offers.at_mut(slot) else { return };
        offer.phase = Phase::Stored;
        if offer.over || (offer.place.is_some() && !PART_STORED.is_planted()) {
            self.drop_offer(slot);
        } else {
            self.settle(slot);
        }
    }

    fn drop_offer(&mut self, slot: u16) {
        let Some(offer) = self.offers.remove_at(slot) else { return };
        offer.place.into_iter().for_each(|place| self.parts.give_back(place));
        offer.piece.into_iter().for_each(|piece| self.pool.give_back(piece));
    }

    /// `from` takes its request back. It reads nothing for it, and did not before; where it has
    /// lent memory, it waits for an answer: what was said already, or that nothing is written.
    pub(super) fn handle_cancel(&mut self, from: Peer, request: Handle, has_lent: bool) {
        if self.waiters.len() > 0 && !WAITER_STAYS.is_planted() {
            self.drop_waiters(|waiter| (waiter.from, waiter.request) == (from, request));
        }
        let refusals = self.refusals.get_mut(from.index());
        if let Some(place) = refusals.and_then(|all| all.get_mut(usize::from(request.slot))) {
            *place = place.filter(|refusal| refusal.generation != request.generation);
        }
        let mut is_answered = false;
        for slot in self.offers.used().iter() {
            let Some(offer) = self.offers.at_mut(slot) else { continue };
            if offer.phase.borrower() != Some((from, request)) {
                continue;
            }
            match &mut offer.phase {
                Phase::Writing { writing, .. } => {
                    writing.end = Some(WriteEnd::Cancelled);
                    is_answered = true;
                    self.settle_write(slot);
                }
                Phase::Asking { said, .. } | Phase::Lent { said, .. } => {
                    is_answered |= *said;
                    self.take_back(slot);
                }
                Phase::Reserved | Phase::Stored | Phase::Consumed => {}
            }
        }
        if has_lent && !is_answered {
            self.refuse((from, request), Status::Cancelled);
        }
    }

    fn drop_waiters(&mut self, is_dropped: impl Fn(&Waiter) -> bool) {
        for slot in self.waiters.used().iter() {
            if self.waiters.at(slot).is_some_and(&is_dropped) {
                self.waiters.remove_at(slot);
            }
        }
    }

    /// The incarnation of `peer` is fenced: it reads no more.
    pub(super) fn handle_fenced(&mut self, peer: Peer) {
        self.drop_waiters(|waiter| waiter.from == peer);
        if let Some(refusals) = self.refusals.get_mut(peer.index()) {
            *refusals = [None; SLOTS];
        }
        self.due.remove(peer);
        for slot in self.offers.used().iter() {
            let Some(offer) = self.offers.at_mut(slot) else { continue };
            match &mut offer.phase {
                Phase::Writing { to, writing, .. } if *to == peer => {
                    writing.end = Some(WriteEnd::Gone);
                    self.settle_write(slot);
                }
                Phase::Lent { to, .. } | Phase::Asking { to, .. } if *to == peer => {
                    self.take_back(slot);
                }
                _ => {}
            }
        }
    }

    /// V8 only: what is lent to a peer that is merely suspected is dropped.
    pub(super) fn handle_suspected(&mut self, peer: Peer) {
        for slot in self.offers.used().iter() {
            let phase = self.offers.at(slot).map(|offer| offer.phase);
            if matches!(phase, Some(Phase::Lent { to, .. }) if to == peer) {
                self.drop_offer(slot);
            }
        }
    }

    /// The step ends: its waiters learn `status`, its values are dropped, those that are lent when
    /// their borrowers have done with them.
    pub(super) fn end_step(&mut self, step: i64, status: Status) {
        for slot in self.waiters.used().iter() {
            if self.waiters.at(slot).is_some_and(|waiter| waiter.name.place.step == step)
                && let Some(waiter) = self.waiters.remove_at(slot)
            {
                self.refuse((waiter.from, waiter.request), status);
            }
        }
        for slot in self.offers.used().iter() {
            let Some(offer) = self.offers.at_mut(slot) else { continue };
            if offer.name.as_ref().is_none_or(|name| name.place.step != step) {
                continue;
            }
            match offer.phase {
                Phase::Stored => self.drop_offer(slot),
                Phase::Asking { to, request, .. } | Phase::Lent { to, request, said: false } => {
                    self.drop_offer(slot);
                    self.refuse((to, request), status);
                }
                Phase::Writing { .. } | Phase::Lent { said: true, .. } => offer.over = true,
                Phase::Reserved | Phase::Consumed => {}
            }
        }
    }

    /// A step that has something here which is not over.
    pub(super) fn any_step(&self) -> Option<i64> {
        let offers = self.offers.iter().filter_map(|(_, offer)| {
            let is_open = !offer.over && offer.phase != Phase::Consumed;
            offer.name.as_ref().filter(|_| is_open).map(|name| name.place.step)
        });
        offers.chain(self.waiters.iter().map(|(_, waiter)| waiter.name.place.step)).next()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !WAITER_STAYS.is_planted() {
            self.drop_waiters(|waiter| waiter.expires_at <= now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiters.iter().map(|(_, waiter)| waiter.expires_at).min()
    }

    pub(super) const fn has_event(&self) -> bool {
        self.consumed > 0
    }

    pub(super) fn poll_event(&mut self) -> Option<RendezvousEvent> {
        if self.consumed == 0 {
            return None;
        }
        let is_consumed = |offer: &Offer| offer.phase == Phase::Consumed;
        let (slot, _) = self.offers.iter().find(|(_, offer)| is_consumed(offer))?;
        let offer = OfferId(self.offers.handle_at(slot)?);
        self.offers.remove_at(slot);
        self.consumed -= 1;
        Some(RendezvousEvent::Consumed { offer })
    }
}

/// The digest of `bytes` bytes of own memory: the CRC-32C of each KiB, folded into one.
pub(super) fn digest(fabric: &impl Fabric, at: At, bytes: u64) -> u32 {
    const CHUNK: usize = 1024;
    let (mut copy, mut folded, mut done) = ([0; CHUNK], 0_u32, 0);
    while done < bytes {
        let len = (bytes - done).min(CHUNK as u64) as usize;
        fabric.memory().copy_out(at.region, at.offset + done as u32, &mut copy[..len]);
        let chunk = fabric.crc32c(&copy[..len]);
        let mut pair = [0; 8];
        pair[..4].copy_from_slice(&folded.to_le_bytes());
        pair[4..].copy_from_slice(&chunk.to_le_bytes());
        folded = fabric.crc32c(&pair);
        done += len as u64;
    }
    folded
}
