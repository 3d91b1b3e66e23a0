//! Memory that is lent to the source: the path write (RZ-1, RZ-2, RZ-12).
//!
//! ```text
//!   Asked ──BUFFER_REQUEST──▶ BUFFER_RESPONSE: lent ──TENSOR_WRITE──▶ Landed
//!     └─ WARM: lent already, as long as the last value of that key ──────┘
//!   lent, and ended before ──▶ Ending ──CANCELLED, TENSOR_WRITE, or the source's fence──▶ returned
//! ```

use super::super::config::Path;
use super::super::key::Key;
use super::super::mutants::WARM_TOO_SMALL;
use super::super::outcome::Received;
use super::super::pool::Piece;
use super::{Destination, Due, Grant, HINTS, Request};
use crate::fabric::Fabric;
use crate::wire::rendezvous::{Flags, Head, Kind};

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    /// Memory for a value that may be as long as the last one of its key (RZ-2). No more than half
    /// of the pool waits so for values that may not be there.
    pub(super) fn warm(&mut self, (key, is_part): (&Key, bool)) -> Option<Piece> {
        if self.config.sizes().path == Path::Read {
            return None;
        }
        let hash = hash(key, is_part);
        let (of, bytes) = self.hints[hash as usize % HINTS];
        let is_small = u64::from(self.pool.lent()) + bytes <= u64::from(self.pool.capacity()) / 2;
        (of == hash && bytes > 0 && is_small).then(|| self.pool.lend(bytes)).flatten()
    }

    fn note_len(&mut self, slot: u16) {
        let Some(request) = self.requests.at(slot) else { return };
        let hash = hash(&request.key, request.part_of.is_some());
        let grant = request.grant.as_ref();
        self.hints[hash as usize % HINTS] = (hash, grant.map_or(0, |grant| grant.bytes));
    }

    /// Whether the request waits for such an answer. One that has ended still does where its source
    /// was lent memory (RZ-12).
    pub(super) fn is_awaited(&self, request: &Request, head: &Head) -> bool {
        let is_asked = request.due != Some(Due::Ask);
        let is_waiting = request.ended.is_none() || request.is_lent;
        let is_first = request.grant.is_none();
        let is_write = self.config.sizes().path == Path::Write;
        let fits = match head.kind {
            Kind::Cancelled | Kind::StepOver => is_first || is_write,
            Kind::TensorWrite if is_written(head) => {
                // What is written is what was asked memory for, and fits into it.
                let is_same = request.grant.as_ref().is_none_or(|grant| {
                    (grant.offer, grant.shape, grant.bytes) == (head.offer, head.shape, head.bytes)
                });
                let len = request.piece.map_or(0, |piece| u64::from(self.pool.len(piece)));
                request.is_lent && is_same && (head.bytes <= len || WARM_TOO_SMALL.is_planted())
            }
            _ => is_first,
        };
        is_asked && is_waiting && fits
    }

    /// The source has nothing for the request, or has dropped it.
    pub(super) fn refuse(&mut self, slot: u16, outcome: Received) {
        let Some(request) = self.requests.at_mut(slot) else { return };
        request.grant = None;
        if request.ended.is_some() {
            request.due = None;
            self.return_memory(slot);
            self.retire(slot);
        } else {
            self.end(slot, outcome);
        }
    }

    /// The source answers a request that has ended meanwhile: unless it learns that already, it
    /// must learn that the value is not taken.
    pub(super) fn give_up(&mut self, slot: u16, head: &Head) {
        let Some(request) = self.requests.at_mut(slot) else { return };
        request.due = None;
        if !request.is_cancelled {
            request.grant = Some(Grant::of(head));
        }
        self.return_memory(slot);
        self.retire(slot);
    }

    /// Lends memory for a value, once the pool has room; what was lent before is too short.
    pub(super) fn respond(&mut self, slot: u16) {
        let Some(request) = self.requests.at_mut(slot).filter(|it| it.ended.is_none()) else {
            return;
        };
        let Some(grant) = request.grant.as_ref().filter(|grant| grant.token.is_none()) else {
            return;
        };
        let fits = |piece: &Piece| u64::from(self.pool.len(*piece)) >= grant.bytes;
        if let Some(short) = request.piece.take_if(|piece| !fits(piece)) {
            self.pool.give_back(short);
        }
        request.piece = request.piece.or_else(|| self.pool.lend(grant.bytes));
        if request.piece.is_some() {
            request.due = Some(Due::Respond);
            self.due.insert(request.key.source());
            self.marks.set(slot);
        }
    }

    /// The source has written all bytes of the value into the landing.
    pub(super) fn land_written(&mut self, fabric: &impl Fabric, slot: u16, head: &Head) {
        self.grant(slot, head);
        if self.requests.at(slot).is_some_and(|request| request.ended.is_none()) {
            self.land(fabric, slot);
            self.note_len(slot);
        }
    }
}

/// Whether the source has written the value where it was lent memory.
pub(super) fn is_written(head: &Head) -> bool {
    head.kind == Kind::TensorWrite && !head.flags.intersects(Flags::INLINE.union(Flags::DEAD))
}

/// FNV-1a: keys that share a hash only guess the length of each other's values.
fn hash(key: &Key, is_part: bool) -> u32 {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    key.name().iter().fold(0x811c_9dc5 ^ u32::from(is_part), mix)
}
