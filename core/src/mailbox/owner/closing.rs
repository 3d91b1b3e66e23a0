//! Closing a half: one compare-swap moves the reservation word to the next epoch.
//!
//! The owner swaps through its own fabric (F-4) once half of the open half's slots are given out
//! and the other half owes nothing. The tickets that the word has given out by then are owed; the
//! word is compared with the owner's own record of it (MB-14).

use super::super::OWNER_WORK;
use super::super::half::Place;
use super::super::mutants::HALF_REUSED_EARLY;
use super::super::watch::Watch;
use super::Mailbox;
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, Work, WorkId};
use crate::wire::slot::Stamp;

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// Begins to close the open half once half of its slots are given out.
    #[inline]
    pub(super) fn close_half(&mut self, fabric: &mut impl Fabric) {
        let given = self.halves[(self.open & 1) as usize].owed();
        if given >= self.config.slots() / 2 && self.closing.is_none() {
            self.open_other(fabric);
        }
    }

    /// Begins the next epoch in the other half, unless messages of that are owed.
    #[inline(never)]
    fn open_other(&mut self, fabric: &mut impl Fabric) {
        let next = self.open.wrapping_add(1);
        let previous = &self.halves[(next & 1) as usize];
        if !previous.is_drained() && !HALF_REUSED_EARLY.is_planted() {
            return;
        }
        if previous.epoch() != next {
            let place = Place { config: &self.config, regions: self.regions };
            self.halves[(next & 1) as usize].begin(fabric, place, next);
        }
        let at = self.regions.word();
        let word = fabric.memory().load(at.region, at.offset);
        self.move_word(fabric, word);
    }

    /// Continues from `word`, the content of the reservation word.
    pub(super) fn move_word(&mut self, fabric: &mut impl Fabric, word: u64) {
        let seen = Stamp::from_count(word);
        if seen.epoch == self.open.wrapping_add(1) {
            // An earlier swap took effect although the fabric reported its failure. Tickets of the
            // next half are already given out; another swap would give them out twice.
            self.handle_closed(fabric, seen);
        } else {
            self.swap_word(fabric, word);
        }
    }

    /// Posts the swap of the word from `expected` to the next epoch with no ticket given out.
    fn swap_word(&mut self, fabric: &mut impl Fabric, expected: u64) {
        let at: At = self.regions.word();
        let new = Stamp { epoch: self.open.wrapping_add(1), ticket: 0 }.to_count();
        let op = Op::CompareSwap { at, expected, new };
        let work = Work { id: WorkId::new(OWNER_WORK, 0), op, flags: CompletionFlags::empty() };
        // A full queue leaves the half open; the next poll tries again.
        if fabric.post(fabric.me(), work).is_ok() {
            self.closing = Some(expected);
        }
    }

    pub(super) fn handle_closed(&mut self, fabric: &impl Fabric, word: Stamp) {
        let slots = self.config.slots();
        let open = self.open;
        let owed = if word.epoch == open {
            let owed = self.half(open).owed();
            if let Some((forgery, tickets)) = self.watch.see(word, owed, slots) {
                self.note_forgery(forgery, tickets);
            }
            word.ticket.min(slots)
        } else {
            debug!("reservation word of epoch {} found in epoch {}", word.epoch, open);
            self.counters.word_repairs += 1;
            self.halves.iter_mut().for_each(|half| half.has_strays = true);
            self.look_foreign(word.epoch);
            slots
        };
        self.watch = Watch::default();
        let place = Place { config: &self.config, regions: self.regions };
        self.halves[(open & 1) as usize].close(fabric, place, owed);
        self.open = open.wrapping_add(1);
    }
}
