//! Values that come part by part, because no memory of a fabric holds them (RZ-3).
//!
//! ```text
//!   granted by a token ──fetch_parts──▶ part 0, part 1, …: a request each, a few at a time
//!     each that has landed: polled, copied, released ──the last one──▶ Ended(Value)
//!     one that ends otherwise ──▶ Ended so, and all others are taken back
//! ```

use super::super::PARTS_OF_A_VALUE;
use super::super::mutants::LAST_PART_ENDS;
use super::super::outcome::{Expect, LandedPart, Place, Received, RequestId, UnknownRequest};
use super::{Destination, Request};
use crate::wire::rendezvous::{Handle, Head};

/// How far a value has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parts {
    count: u32,
    /// The first part that is not asked for.
    next: u32,
    /// How many the caller has taken.
    taken: u32,
}

/// For which receive a part is, and by which name its source lends the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartOf {
    whole: Handle,
    offer: Handle,
}

impl PartOf {
    pub(super) const fn offer(self) -> Handle {
        self.offer
    }
}

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    /// What a token names comes in parts.
    pub(in super::super) fn fetch_parts(
        &mut self,
        request: RequestId,
    ) -> Result<(), UnknownRequest> {
        let sizes = self.config.sizes().parts;
        let whole = self.requests.get_mut(request.0).map_err(|_| UnknownRequest)?;
        let is_open = whole.ended.is_none();
        let grant = whole.grant.as_mut().filter(|grant| is_open && grant.fetched);
        let grant = grant.filter(|grant| grant.parts.is_none()).ok_or(UnknownRequest)?;
        match sizes.count(grant.bytes) {
            Some(0) => self.end(request.0.slot, Received::Value),
            Some(count) => grant.parts = Some(Parts { count, next: 0, taken: 0 }),
            None => self.end(request.0.slot, Received::TooLarge),
        }
        self.ask_parts(request.0.slot);
        Ok(())
    }

    /// Asks for the next parts: a few of a value, and of a peer no more than wait there.
    pub(super) fn ask_parts(&mut self, slot: u16) {
        let share = self.config.parts_of_peer();
        let Some(whole) = self.requests.handle_at(slot) else { return };
        while let Some(request) = self.requests.at_mut(slot).filter(|it| it.ended.is_none()) {
            let (from, step) = (request.key.source().index(), request.place.step);
            let Some(grant) = &mut request.grant else { return };
            let Some(parts) = &mut grant.parts else { return };
            let is_enough = parts.next - parts.taken >= PARTS_OF_A_VALUE;
            if parts.next == parts.count || is_enough || self.parts[from] >= share {
                return;
            }
            let place = Place { step, part: parts.next, parts: parts.count };
            parts.next += 1;
            let part_of = Some(PartOf { whole, offer: grant.offer });
            let (key, how) = (request.key.clone(), (Expect::any(), request.deadline));
            // Parts have slots of their own.
            if self.ask((&key, place), how, part_of).is_some() {
                self.parts[from] += 1;
            }
        }
    }

    /// Whether an answer is about the part that was asked for, and about that value.
    pub(super) fn is_of_whole(&self, request: &Request, head: &Head) -> bool {
        let Some(part_of) = request.part_of else { return true };
        let whole = self.requests.get(part_of.whole).ok().and_then(|it| it.grant.as_ref());
        // One that has ended has given its parts up: whatever is said of them.
        whole.is_none_or(|whole| {
            let (_, bytes) = self.config.sizes().parts.range(whole.bytes, request.place.part);
            (head.shape, head.bytes, head.token) == (whole.shape, bytes, 0)
        })
    }

    /// A part has landed that the caller has not polled.
    pub(in super::super) const fn has_part(&self) -> bool {
        self.landed > 0
    }

    /// The next part that has landed.
    pub(in super::super) fn poll_part(&mut self) -> Option<LandedPart> {
        if self.landed == 0 {
            return None;
        }
        let is_next = |it: &Request| {
            it.part_of.is_some() && it.ended == Some(Received::Value) && !it.is_end_polled
        };
        let (slot, _) = self.requests.iter().find(|(_, request)| is_next(request))?;
        let part = RequestId(self.requests.handle_at(slot)?);
        let tensor = self.tensor(part)?;
        let request = self.requests.at_mut(slot)?;
        request.is_end_polled = true;
        self.landed -= 1;
        let (offset, bytes) = (request.place.part, tensor.bytes);
        let (offset, _) = self.config.sizes().parts.range(u64::MAX, offset);
        let request = RequestId(request.part_of?.whole);
        Some(LandedPart { request, part, offset, at: tensor.at, bytes })
    }

    /// The caller has copied a part.
    pub(super) fn note_part_taken(&mut self, PartOf { whole, .. }: PartOf) {
        let Ok(request) = self.requests.get_mut(whole) else { return };
        let is_open = request.ended.is_none();
        let Some(parts) = request.grant.as_mut().and_then(|it| it.parts.as_mut()) else { return };
        parts.taken += 1;
        let is_last = LAST_PART_ENDS.is_planted() && parts.next == parts.count;
        if is_open && (parts.taken == parts.count || is_last) {
            self.end(whole.slot, Received::Value);
        } else {
            self.ask_parts(whole.slot);
        }
    }

    /// A part that did not land ends its value.
    pub(super) fn note_part_end(&mut self, PartOf { whole, .. }: PartOf, outcome: Received) {
        if outcome != Received::Value && self.requests.get(whole).is_ok() {
            self.end(whole.slot, of_whole(outcome));
        }
    }

    /// A value has ended, and so do its parts.
    pub(super) fn end_parts(&mut self, slot: u16) {
        let grant = self.requests.at(slot).and_then(|request| request.grant.as_ref());
        if grant.is_none_or(|grant| grant.parts.is_none()) {
            return;
        }
        let whole = self.requests.handle_at(slot);
        for at in self.requests.used().iter() {
            let Some(part) = self.requests.at_mut(at) else { continue };
            if part.part_of.map(|it| it.whole) != whole {
                continue;
            }
            match part.ended {
                None => self.end(at, Received::Cancelled),
                // It has landed, and is not taken.
                Some(Received::Value) if !part.released => {
                    self.landed -= u16::from(!part.is_end_polled);
                    part.is_end_polled = true;
                    part.released = true;
                    self.drop_piece(at);
                    self.retire(at);
                }
                Some(_) => {}
            }
        }
    }
}

/// How a value ends of which a part has ended so.
const fn of_whole(outcome: Received) -> Received {
    use Received::{Aborted, Corrupt, NotHandedOver, PeerGone, StepOver, TimedOut, TooLarge};
    match outcome {
        Aborted | Corrupt | PeerGone | StepOver | TimedOut | TooLarge => outcome,
        _ => NotHandedOver,
    }
}
