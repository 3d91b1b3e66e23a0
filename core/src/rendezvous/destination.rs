//! The destination's side: requests, and the reads that fetch their values.
//!
//! ```text
//!   Asked ──BUFFER_REQUEST──▶ Granted{reads out} ──all read──▶ Landed ──polled──▶ BUFFER_IDLE(ok)
//!     │                          │                               └──released──▶ free
//!     └── deadline, cancel, fence, refusal ──▶ Ending ──no read out──▶ returned ──polled──▶ free
//! ```
//!
//! A request ends at once and exactly once. Its memory is returned exactly once, when no read of
//! it is out (RZ-12), and never by a clock. BUFFER_IDLE(ok) is sent once the caller has learned of
//! the value: if this incarnation ends before, the next one is offered it again (RZ-5).

mod elsewhere;
mod lent;
mod messages;
mod parts;
mod reads;

use lent::is_written;
use parts::{PartOf, Parts};

use super::config::{Digest, Path, RendezvousConfig, RendezvousRegions};
use super::key::Key;
use super::mutants::{
    ADDRESS_OF_LAYOUT, DEAD_KEEPS_LANDING, DIGEST_OF_ITSELF, RETURNED_EARLY, RETURNED_UNANSWERED,
};
use super::outcome::{
    Expect, MessageReject, Place, Received, RendezvousEvent, RequestId, Tensor, UnknownRequest,
};
use super::pool::{Piece, Pool};
use super::slots::{Marks, Slots};
use super::source::digest;
use crate::fabric::{At, Fabric, Memory, Region};
use crate::ids::{Peer, PeerSet};
use crate::time::Instant;
use crate::wire::rendezvous::{Flags, Handle, Head, Kind, Shape, Status};

/// What the source must be sent next about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Due {
    Ask,
    /// Where the source writes the value.
    Respond,
    Cancel,
    Idle(Status),
}

/// A value that was lent to a request, and how far it is read.
#[derive(Clone, Debug, Hash)]
struct Grant {
    offer: Handle,
    /// None of a dead value.
    shape: Option<Shape>,
    bytes: u64,
    from: At,
    /// Of a value that the host hands over, which is then not read.
    token: Option<u64>,
    /// Its caller fetches it.
    fetched: bool,
    /// How far it has come in parts, if it comes so.
    parts: Option<Parts>,
    digest: Option<u32>,
    posted: u64,
}

#[derive(Clone, Debug, Hash)]
struct Request {
    key: Key,
    place: Place,
    /// It is for a part: its events are not its caller's.
    part_of: Option<PartOf>,
    expect: Expect,
    deadline: Instant,
    due: Option<Due>,
    grant: Option<Grant>,
    /// The landing: none while the pool has no room, and of what came in a message.
    piece: Option<Piece>,
    /// The source may write into it, until it says that it does not any more, or is fenced.
    is_lent: bool,
    /// It was sent that the request is taken back, which it answers if it is lent memory.
    is_cancelled: bool,
    /// Reads that are out.
    out: u8,
    /// A read failed: no other is posted.
    failed: bool,
    /// The source's incarnation is fenced: nothing more is said to it.
    gone: bool,
    ended: Option<Received>,
    is_end_polled: bool,
    returned: bool,
    is_return_polled: bool,
    /// The caller needs the bytes no more.
    released: bool,
}

/// Lengths that are remembered.
const HINTS: usize = 64;

#[derive(Clone, Debug, Hash)]
pub(super) struct Destination<const PEERS: usize, const SLOTS: usize> {
    config: RendezvousConfig,
    regions: RendezvousRegions,
    pool: Pool,
    requests: Slots<Request, SLOTS>,
    /// Reads that are out, by peer.
    out: [u8; PEERS],
    due: PeerSet,
    /// Requests about which something may be due.
    marks: Marks,
    /// How long the last value of a key was that was written here, by the hash of the key (RZ-2).
    hints: [(u32, u64); HINTS],
    /// Events that the caller has not polled.
    unpolled: u16,
    /// A value may be to be fetched that the host hands over.
    may_fetch: bool,
    /// Requests for parts, by peer.
    parts: [u16; PEERS],
    /// Parts that have landed and that the caller has not polled.
    landed: u16,
}

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    pub(super) fn new(config: RendezvousConfig, regions: RendezvousRegions) -> Self {
        let sizes = config.sizes();
        Self {
            config,
            regions,
            pool: Pool::new(sizes.leaf_len, sizes.landing_leaves),
            requests: Slots::new(),
            out: [0; PEERS],
            due: PeerSet::EMPTY,
            marks: Marks::NONE,
            hints: [(0, 0); HINTS],
            unpolled: 0,
            may_fetch: false,
            parts: [0; PEERS],
            landed: 0,
        }
    }

    pub(super) const fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) const fn requests(&self) -> u16 {
        self.requests.len()
    }

    pub(super) const fn due(&self) -> PeerSet {
        self.due
    }

    pub(super) const fn note_all_said(&mut self, to: Peer) {
        self.due.remove(to);
    }

    /// Bytes that a request which has ended still holds because its reads are out.
    pub(super) fn quarantined(&self) -> u64 {
        let held = self.requests.iter().filter(|(_, it)| it.ended.is_some() && !it.returned);
        let bytes = |it: &Request| match (&it.grant, it.piece) {
            (Some(grant), _) => Some(grant.bytes),
            (None, piece) => piece.map(|piece| u64::from(self.pool.len(piece))),
        };
        held.filter_map(|(_, it)| bytes(it)).sum()
    }

    pub(super) fn receive(
        &mut self,
        (key, place): (&Key, Place),
        expect: Expect,
        deadline: Instant,
    ) -> Option<RequestId> {
        let parts = self.parts.iter().sum::<u16>();
        let has_slot = self.requests.len() - parts < self.config.sizes().slots;
        has_slot.then(|| self.ask((key, place), (expect, deadline), None)).flatten()
    }

    fn ask(
        &mut self,
        (key, place): (&Key, Place),
        (expect, deadline): (Expect, Instant),
        part_of: Option<PartOf>,
    ) -> Option<RequestId> {
        let request = Request {
            key: key.clone(),
            place,
            part_of,
            expect,
            deadline,
            due: Some(Due::Ask),
            grant: None,
            piece: None,
            is_lent: false,
            is_cancelled: false,
            out: 0,
            failed: false,
            gone: false,
            ended: None,
            is_end_polled: false,
            returned: false,
            is_return_polled: false,
            released: false,
        };
        let handle = self.requests.insert(self.config.slots(), request)?;
        let piece = self.warm((key, part_of.is_some()));
        if let Some(request) = self.requests.at_mut(handle.slot) {
            request.piece = piece;
        }
        self.due.insert(key.source());
        self.marks.set(handle.slot);
        Some(RequestId(handle))
    }

    /// The source answers: the value, where it lies, or why there is none.
    pub(super) fn handle_answer(
        &mut self,
        fabric: &impl Fabric,
        from: Peer,
        (head, payload): (&Head, &[u8]),
    ) -> Result<(), MessageReject> {
        let request = self.requests.get(head.request)?;
        if request.key.source() != from {
            return Err(MessageReject::NotMine);
        }
        if !self.is_awaited(request, head) {
            return Err(MessageReject::Unexpected);
        }
        let slot = head.request.slot;
        let is_refusal = matches!(head.kind, Kind::Cancelled | Kind::StepOver);
        let place = (request.place.part, request.place.parts);
        if !is_refusal && ((head.part, head.parts) != place || !self.is_of_whole(request, head)) {
            return Err(MessageReject::BadShape);
        }
        let is_read = self.config.sizes().path == Path::Read;
        let is_elsewhere = head.flags.contains(Flags::SAME_HOST);
        if is_read && head.kind == Kind::BufferRequest && !is_elsewhere {
            self.check_address(fabric, head)?;
        }
        let is_over = request.ended.is_some();
        // Whatever it answers, it writes no more.
        if let Some(request) = self.requests.at_mut(slot) {
            request.is_lent = false;
        }
        if is_refusal {
            self.refuse(slot, outcome_of(head.status));
        } else if is_over {
            self.give_up(slot, head);
        } else if is_written(head) {
            self.land_written(fabric, slot, head);
        } else {
            self.grant(slot, head);
            match head.kind {
                Kind::TensorWrite => self.land_inline(fabric, slot, head, payload),
                _ if !is_read && !is_elsewhere => self.respond(slot),
                _ => {}
            }
        }
        Ok(())
    }

    /// F-11, and more: the value lies where that purpose has its region.
    fn check_address(&self, fabric: &impl Fabric, head: &Head) -> Result<(), MessageReject> {
        let region = Region(head.region);
        let spec = fabric.layout().spec(region).ok_or(MessageReject::BadAddress)?;
        let end = u64::from(head.offset).checked_add(head.bytes);
        let lies_inside = end.is_some_and(|end| end <= u64::from(spec.len));
        let is_of_offers = region == self.regions.offers || ADDRESS_OF_LAYOUT.is_planted();
        if lies_inside && is_of_offers { Ok(()) } else { Err(MessageReject::BadAddress) }
    }

    fn grant(&mut self, slot: u16, head: &Head) {
        let is_handed_over = head.flags.contains(Flags::SAME_HOST);
        let could_hold = is_handed_over || self.pool.could_hold(head.bytes);
        self.may_fetch |= is_handed_over;
        let Some(request) = self.requests.at_mut(slot) else { return };
        request.grant = Some(Grant::of(head));
        match head.shape {
            Some(shape) if !request.expect.is_met(&shape, head.bytes) => {
                self.end(slot, Received::Mismatch(shape));
            }
            Some(_) if head.kind == Kind::BufferRequest && !could_hold => {
                self.end(slot, Received::TooLarge);
            }
            Some(_) | None => {}
        }
    }

    /// A value that came in its message lands in the request's own place; a dead one nowhere.
    fn land_inline(&mut self, fabric: &impl Fabric, slot: u16, head: &Head, payload: &[u8]) {
        if self.requests.at(slot).is_none_or(|request| request.ended.is_some()) {
            return;
        }
        if head.flags == Flags::DEAD {
            if DEAD_KEEPS_LANDING.is_planted() {
                let _ = self.pool.lend(1);
            }
            return self.end(slot, Received::Dead);
        }
        self.drop_piece(slot);
        let at = self.config.place(self.regions, slot);
        fabric.memory().copy_in(at.region, at.offset, payload);
        self.end(slot, Received::Value);
    }

    fn drop_piece(&mut self, slot: u16) {
        let piece = self.requests.at_mut(slot).and_then(|request| request.piece.take());
        piece.into_iter().for_each(|piece| self.pool.give_back(piece));
    }

    /// The request ends now; its memory is returned when no read of it is out, and no write can be.
    fn end(&mut self, slot: u16, outcome: Received) {
        let Some(request) = self.requests.at_mut(slot) else { return };
        if request.ended.is_some() {
            return;
        }
        let part_of = request.part_of;
        request.ended = Some(outcome);
        request.released = outcome != Received::Value;
        match part_of {
            None => self.unpolled += 1,
            Some(_) if outcome == Received::Value => self.landed += 1,
            Some(_) => request.is_end_polled = true,
        }
        if request.grant.is_none() || request.is_lent {
            // Before it was sent there is nothing to take back, and a source that refused it or is
            // gone has forgotten it.
            let is_known = request.due != Some(Due::Ask) && is_by_me(outcome);
            request.due = is_known.then_some(Due::Cancel);
            if is_known {
                self.due.insert(request.key.source());
                self.marks.set(slot);
            }
        }
        let is_lent = request.is_lent && !RETURNED_UNANSWERED.is_planted();
        if (request.out == 0 && !is_lent) || RETURNED_EARLY.is_planted() {
            self.return_memory(slot);
        }
        match part_of {
            Some(part_of) => self.note_part_end(part_of, outcome),
            None => self.end_parts(slot),
        }
    }

    /// No read is out, and no write can be, so no byte of the landing can change any more.
    fn return_memory(&mut self, slot: u16) {
        let Some(request) = self.requests.at_mut(slot) else { return };
        let Some(outcome) = request.ended.filter(|_| !request.returned) else { return };
        let is_part = request.part_of.is_some();
        request.returned = true;
        request.is_return_polled = is_part;
        self.unpolled += u16::from(!is_part);
        if outcome != Received::Value {
            request.piece.take().into_iter().for_each(|piece| self.pool.give_back(piece));
        }
        let is_lent = request.grant.is_some() && !request.is_cancelled && !request.is_lent;
        // The receiver of a value, or of a dead one, says so once its caller knows; of a part now.
        let is_later = !is_part && matches!(outcome, Received::Value | Received::Dead);
        if is_lent && !request.gone && !is_later {
            request.due = Some(Due::Idle(status_of(outcome)));
            self.due.insert(request.key.source());
            self.marks.set(slot);
        }
        if is_part {
            self.retire(slot);
        }
    }

    /// Frees the slot when all is said, polled and released.
    fn retire(&mut self, slot: u16) {
        let Some(request) = self.requests.at(slot) else { return };
        let is_polled = request.is_end_polled && request.is_return_polled;
        let is_over = is_polled && request.released && request.due.is_none();
        // A read of the request may be out with V5 alone.
        if is_over {
            if request.part_of.is_some() {
                self.parts[request.key.source().index()] -= 1;
            }
            self.requests.remove_at(slot);
            self.marks.clear(slot);
        }
    }

    /// All bytes are read.
    fn land(&mut self, fabric: &impl Fabric, slot: u16) {
        let Some(request) = self.requests.at(slot) else { return };
        let Some((grant, piece)) = request.grant.as_ref().zip(request.piece) else { return };
        let at = self.landing(piece);
        let is_checked = self.config.sizes().digest == Digest::Crc32c && grant.digest.is_some();
        let found = is_checked.then(|| digest(fabric, at, grant.bytes));
        let expected = if DIGEST_OF_ITSELF.is_planted() { found } else { grant.digest };
        let is_whole = !is_checked || found == expected;
        self.end(slot, if is_whole { Received::Value } else { Received::Corrupt });
    }

    /// Ends a request by order of its caller.
    pub(super) fn cancel(&mut self, request: RequestId) -> Result<(), UnknownRequest> {
        self.requests.get(request.0).map_err(|_| UnknownRequest)?;
        self.end(request.0.slot, Received::Cancelled);
        Ok(())
    }

    /// The caller needs the value no more.
    pub(super) fn release(&mut self, request: RequestId) -> Result<(), UnknownRequest> {
        let slot = request.0.slot;
        let value = self.requests.get_mut(request.0).map_err(|_| UnknownRequest)?;
        if value.released || !value.is_end_polled {
            return Err(UnknownRequest);
        }
        value.released = true;
        let (piece, part_of) = (value.piece.take(), value.part_of);
        piece.into_iter().for_each(|piece| self.pool.give_back(piece));
        self.retire(slot);
        part_of.into_iter().for_each(|part_of| self.note_part_taken(part_of));
        Ok(())
    }

    pub(super) fn tensor(&self, request: RequestId) -> Option<Tensor> {
        let value = self.requests.get(request.0).ok()?;
        let is_there = value.ended == Some(Received::Value) && !value.released;
        let grant = value.grant.as_ref().filter(|grant| is_there && grant.token.is_none())?;
        let at = match value.piece {
            Some(piece) => At { region: self.regions.landings, offset: self.pool.offset(piece) },
            None => self.config.place(self.regions, request.0.slot),
        };
        Some(Tensor { shape: grant.shape?, at, bytes: grant.bytes })
    }

    /// The incarnation of `peer` is fenced: what was asked of it is not answered.
    pub(super) fn handle_fenced(&mut self, peer: Peer) {
        for slot in self.requests.used().iter() {
            let Some(request) = self.requests.at_mut(slot) else { continue };
            if request.key.source() != peer {
                continue;
            }
            // What was not sent goes to the next incarnation.
            if request.due != Some(Due::Ask) {
                request.due = None;
                request.gone = true;
                // It writes no more.
                let was_lent = core::mem::take(&mut request.is_lent);
                self.end(slot, Received::PeerGone);
                if was_lent {
                    self.return_memory(slot);
                }
            }
            self.retire(slot);
        }
    }

    /// Nothing of `peer` comes back: what was not sent ends, too.
    pub(super) fn handle_removed(&mut self, peer: Peer) {
        for slot in self.requests.used().iter() {
            if self.requests.at(slot).is_some_and(|request| request.key.source() == peer) {
                self.end(slot, Received::PeerGone);
            }
        }
    }

    pub(super) fn end_step(&mut self, step: i64, status: Status) {
        for slot in self.requests.used().iter() {
            if self.requests.at(slot).is_some_and(|request| request.place.step == step) {
                self.end(slot, outcome_of(status));
            }
        }
    }

    /// A step that has an open request.
    pub(super) fn any_step(&self) -> Option<i64> {
        let mut open = self.requests.iter().filter(|(_, request)| request.ended.is_none());
        open.next().map(|(_, request)| request.place.step)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.requests.len() == 0 {
            return;
        }
        for slot in self.requests.used().iter() {
            if self.requests.at(slot).is_some_and(|request| request.deadline <= now) {
                self.end(slot, Received::TimedOut);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let open = self.requests.iter().filter(|(_, request)| request.ended.is_none());
        open.map(|(_, request)| request.deadline).min()
    }

    pub(super) const fn has_event(&self) -> bool {
        self.unpolled > 0
    }

    pub(super) fn poll_event(&mut self) -> Option<RendezvousEvent> {
        if self.unpolled == 0 {
            return None;
        }
        let is_unpolled = |request: &Request| {
            let is_ended = request.ended.is_some() && !request.is_end_polled;
            let is_unknown = is_ended || (request.returned && !request.is_return_polled);
            is_unknown && request.part_of.is_none()
        };
        let (slot, _) = self.requests.iter().find(|(_, request)| is_unpolled(request))?;
        let id = RequestId(self.requests.handle_at(slot)?);
        let request = self.requests.at_mut(slot)?;
        self.unpolled -= 1;
        if request.is_end_polled {
            request.is_return_polled = true;
            self.retire(slot);
            return Some(RendezvousEvent::Returned { request: id });
        }
        request.is_end_polled = true;
        let outcome = request.ended?;
        if matches!(outcome, Received::Value | Received::Dead) && !request.gone {
            request.due = Some(Due::Idle(Status::Ok));
            self.due.insert(request.key.source());
            self.marks.set(slot);
        }
        Some(RendezvousEvent::Ended { request: id, outcome })
    }

    const fn landing(&self, piece: Piece) -> At {
        At { region: self.regions.landings, offset: self.pool.offset(piece) }
    }
}

impl Grant {
    fn of(head: &Head) -> Self {
        Self {
            offer: head.offer,
            shape: head.shape,
            bytes: head.bytes,
            from: At { region: Region(head.region), offset: head.offset },
            token: head.flags.contains(Flags::SAME_HOST).then_some(head.token),
            fetched: false,
            parts: None,
            digest: head.flags.contains(Flags::DIGEST).then_some(head.digest),
            posted: 0,
        }
    }
}

/// Whether the source does not know yet that the request ended so.
const fn is_by_me(outcome: Received) -> bool {
    use Received::{Aborted, Cancelled, StepOver, TimedOut};
    matches!(outcome, TimedOut | Cancelled | Aborted | StepOver)
}

const fn outcome_of(status: Status) -> Received {
    match status {
        Status::NoSpace => Received::NoSpace,
        Status::SourceReborn => Received::SourceReborn,
        Status::StepOver => Received::StepOver,
        Status::Aborted => Received::Aborted,
        Status::Corrupt => Received::Corrupt,
        Status::TooLarge => Received::TooLarge,
        // A source that says no more than that has dropped the request.
        Status::Ok | Status::Cancelled | Status::Mismatch => Received::Cancelled,
    }
}

const fn status_of(outcome: Received) -> Status {
    match outcome {
        Received::Value | Received::Dead => Status::Ok,
        Received::Mismatch(_) => Status::Mismatch,
        Received::Corrupt => Status::Corrupt,
        Received::TooLarge => Status::TooLarge,
        Received::Aborted => Status::Aborted,
        Received::StepOver => Status::StepOver,
        Received::NoSpace => Status::NoSpace,
        Received::SourceReborn => Status::SourceReborn,
        Received::TimedOut | Received::Cancelled | Received::PeerGone | Received::NotHandedOver => {
            Status::Cancelled
        }
    }
}
