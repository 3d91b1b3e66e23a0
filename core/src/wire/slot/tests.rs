//! Slots, as they are written and as readers find them.

use super::*;
use crate::fabric::Region;
use crate::wire::crc32c;
use core::cell::Cell;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

fn trailer() -> impl Strategy<Value = Trailer> {
    (any::<[u16; 4]>(), any::<[u32; 2]>()).prop_map(|(short, long)| Trailer {
        len: 0,
        sender: short[0],
        sequence: long[0],
        stamp: Stamp { epoch: long[1], ticket: short[3].into() },
        kind: short[1],
        incarnation: short[2],
        run: 1,
    })
}

fn sealed(trailer: Trailer, payload: &[u8]) -> (Trailer, Vec<u8>) {
    let trailer = Trailer { len: u16::try_from(payload.len()).unwrap(), ..trailer };
    let mut slot = vec![0; used(payload.len())];
    slot[..payload.len()].copy_from_slice(payload);
    trailer.write(&mut slot);
    seal(&mut slot, trailer.stamp, 1, trailer.sequence, crc32c);
    (trailer, slot)
}

proptest! {
    #[test]
    fn a_sealed_slot_opens_to_what_was_sealed(
        trailer in trailer(), payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let (trailer, mut slot) = sealed(trailer, &payload);
        prop_assert_eq!(Trailer::open(&mut slot, trailer.stamp, crc32c), Ok(trailer));
        prop_assert_eq!(&slot[..payload.len()], &payload);
    }

    #[test]
    fn any_flipped_byte_is_refused(
        trailer in trailer(), payload in proptest::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let (trailer, mut slot) = sealed(trailer, &payload);
        let at = at.index(slot.len());
        slot[at] ^= flip;
        prop_assert!(Trailer::open(&mut slot, trailer.stamp, crc32c).is_err());
    }

    #[test]
    fn garbage_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 24..80)) {
        let stamp = Stamp::from_word(u64_at(&bytes, bytes.len() - 8) & RUN_MASK);
        let _ = Trailer::open(&mut bytes, stamp, crc32c);
    }
}

#[test]
fn a_truncated_slot_is_refused_at_every_length() {
    let (trailer, slot) = sealed(Trailer::default(), b"a payload");
    for start in 1..=slot.len() - TRAILER_LEN {
        let result = Trailer::open(&mut slot[start..].to_vec(), trailer.stamp, crc32c);
        assert_eq!(result, Err(SlotError::Length), "without {start} bytes");
    }
}

#[test]
fn another_use_of_the_slot_is_distinguished_from_damage() {
    let (trailer, mut slot) = sealed(Trailer::default(), b"payload");
    let next = Stamp { epoch: trailer.stamp.epoch + 2, ..trailer.stamp };
    assert_eq!(Trailer::open(&mut slot, next, crc32c), Err(SlotError::Stamp));
}

/// Memory in which a write of two slots arrives while it is looked at.
struct Arriving {
    /// Before, and once all has arrived.
    words: [Vec<u64>; 2],
    /// The words that are there from the beginning, as bits.
    early: u32,
    /// After so many loads all of them are.
    loads: Cell<usize>,
}

impl Memory for Arriving {
    fn load(&self, _: Region, offset: u32) -> u64 {
        let index = offset as usize / 8;
        let left = self.loads.get();
        self.loads.set(left.saturating_sub(1));
        let is_there = left == 0 || self.early >> index & 1 == 1;
        self.words[usize::from(is_there)][index]
    }

    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        for (at, bytes) in (offset..).step_by(8).zip(into.chunks_mut(8)) {
            bytes.copy_from_slice(&self.load(region, at).to_le_bytes()[..bytes.len()]);
        }
    }

    fn store(&self, _: Region, _: u32, _: u64) {}

    fn copy_in(&self, _: Region, _: u32, _: &[u8]) {}
}

/// F-14: whichever words of a write come before its last one, and whenever the rest comes.
#[test]
fn a_slot_is_whole_or_not_there_at_each_moment_of_its_write() {
    const WORDS: usize = 5;
    let first = Stamp { epoch: 4, ticket: 0 };
    let slots = |stamp: Stamp, fill: u8| {
        let slot = |ticket| {
            let stamp = Stamp { ticket, ..stamp };
            let trailer = Trailer { len: 16, sender: fill.into(), stamp, ..Trailer::default() };
            let mut slot = vec![fill; used(16)];
            trailer.write(&mut slot);
            let sequence = u32::from(fill) + ticket;
            seal_by_stamps([&mut slot[..]].into_iter(), stamp, 2 - ticket as u16, sequence);
            slot
        };
        let bytes = [slot(0), slot(1)].concat();
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    };
    let words = [slots(Stamp { epoch: 2, ..first }, 1), slots(first, 2)];
    let mut taken = 0;
    // All words but the last one may be early.
    for case in 0..14 << (2 * WORDS - 1) {
        let (early, loads) = (case / 14, Cell::new(case as usize % 14));
        let memory = Arriving { words: words.clone(), early, loads };
        let end = At { region: Region(0), offset: 8 * WORDS as u32 };
        let slot = Slot { end, stamp: first, capacity: 16, stride: end.offset, slots: 2 };
        let mut scratch = [0; used(16)];
        let mut is_end_seen = false;
        if let Ok(trailer) = slot.copy_out(&memory, Sealing::Stamp, &mut scratch, crc32c) {
            assert_eq!((trailer.len, trailer.sender, trailer.sequence), (16, 2, 2));
            assert_eq!(scratch[..16], [2; 16]);
            (taken, is_end_seen) = (taken + 1, true);
        }
        // The first slot again, whose end was seen or was not; then the last one.
        let mut glance = |slot: &Slot, is_seen| {
            scratch = [0; used(16)];
            let Glance::Stamped(trailer, last) = slot.glance(&memory, Sealing::Stamp) else {
                return None;
            };
            (is_seen || trailer.run == 1).then(|| {
                slot.copy_payload(&memory, last, trailer.len, &mut scratch);
                trailer
            })
        };
        assert_eq!(glance(&slot, is_end_seen).is_some(), is_end_seen);
        let end = At { offset: 2 * end.offset, ..end };
        let last = Slot { end, stamp: Stamp { ticket: 1, ..first }, ..slot };
        if let Some(trailer) = glance(&last, false) {
            assert_eq!((trailer.len, trailer.sender, trailer.sequence), (16, 2, 3));
            assert_eq!(scratch[..16], [2; 16]);
        } else {
            assert!(!is_end_seen, "all has arrived");
        }
    }
    assert!(taken > 100, "{taken}");
}

/// F-14, for a packed write of three messages in two slots, over one of another sender.
#[test]
fn a_packed_message_is_whole_or_not_there_at_each_moment_of_its_write() {
    const WORDS: usize = 5;
    const STRIDE: u32 = 8 * WORDS as u32;
    let first = Stamp { epoch: 4, ticket: 0 };
    let write = |stamp: Stamp, fill: u8| {
        let mut slots = vec![fill; 2 * STRIDE as usize];
        let (sender, kind) = (fill.into(), fill.into());
        let head = Trailer { len: 16, sender, kind, ..Trailer::default() };
        head.write(&mut slots[..STRIDE as usize]);
        seal_packed(&mut slots, STRIDE as usize, stamp, (sender, 3, sender.into()));
        let words = slots.as_chunks::<8>().0.iter();
        words.map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()
    };
    let words = [write(Stamp { epoch: 2, ..first }, 1), write(first, 2)];
    // Each slot says whose it is: another member that overwrites it is not taken for the first.
    assert_ne!(write(first, 3).last(), words[1].last());
    let mut taken = 0;
    // All words but the last one may be early.
    for case in 0..16 << (2 * WORDS - 1) {
        let memory = Arriving {
            words: words.clone(),
            early: case / 16,
            loads: Cell::new(case as usize % 16),
        };
        let end = At { region: Region(0), offset: STRIDE };
        let slot = Slot { end, stamp: first, capacity: 16, stride: STRIDE, slots: 3 };
        let mut scratch = [0; 2 * STRIDE as usize];
        for behind in [0, 1, 2] {
            let copied = match behind {
                0 => slot.copy_out(&memory, Sealing::Stamp, &mut scratch, crc32c),
                _ => slot.copy_packed(&memory, behind, &mut scratch),
            };
            let Ok(found) = copied else { continue };
            assert_eq!((found.len, found.sender, found.kind), (16, 2, 2));
            assert_eq!((found.sequence, found.stamp.ticket), (2 + behind, behind));
            assert_eq!(scratch[..16], [2; 16]);
            taken += 1;
        }
        let Ok(trailer) = slot.first_of_packed(&memory) else { continue };
        for begin in [0, 1, 2] {
            let mut visited = begin;
            slot.glance_packed(&memory, &trailer, begin..3, &mut scratch, |found, payload| {
                assert_eq!((found.sequence, found.stamp.ticket), (2 + visited, visited));
                assert_eq!(payload, [2; 16]);
                visited += 1;
            });
            assert_eq!(visited, 3);
            taken += visited - begin;
            // Another write covers a slot behind the first look at it.
            for changed in [0, 1] {
                let words = [Vec::new(), memory.words[1].clone()];
                let mut other = Arriving { words, early: 0, loads: Cell::new(0) };
                other.words[1][(changed as usize + 1) * WORDS - 1] ^= 1;
                let mut visited = begin;
                slot.glance_packed(&other, &trailer, begin..3, &mut scratch, |_, _| {
                    visited += 1;
                });
                let due = if changed == 0 && begin > 0 { 3 } else { begin.max(changed) };
                assert_eq!(visited, due);
            }
        }
    }
    assert!(taken > 1000, "{taken}");
}

/// Not even packed: an owner looks for the beginning of a write no further back.
#[test]
fn a_run_of_more_messages_than_a_batch_has_is_refused() {
    const STRIDE: u32 = 40;
    let stamp = Stamp { epoch: 4, ticket: 0 };
    for (count, is_batch) in [(102, true), (103, false)] {
        let mut slots = [0; 53 * STRIDE as usize];
        Trailer { len: 16, ..Trailer::default() }.write(&mut slots[..STRIDE as usize]);
        let len = Packing::new(STRIDE, 16).unwrap().slots(count) * STRIDE;
        seal_packed(&mut slots[..len as usize], STRIDE as usize, stamp, (0, count as u16, 0));
        let words = slots.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words = [Vec::new(), words.collect()];
        let memory = Arriving { words, early: 0, loads: Cell::new(0) };
        let end = At { region: Region(0), offset: STRIDE };
        let slot = Slot { end, stamp, capacity: 16, stride: STRIDE, slots: 512 };
        assert_eq!(slot.first_of_packed(&memory).is_ok(), is_batch, "{count}");
    }
}

/// A member that breaks the protocol writes the stamp of a whole write again.
#[test]
fn a_run_that_changes_while_it_is_looked_at_never_leaves_the_slots() {
    const STRIDE: u32 = 40;
    let stamp = Stamp { epoch: 4, ticket: 0 };
    for run in [u16::MAX, PACKED | 0x3fff, 0x3fff, PACKED | 4] {
        let mut slots = [0; 2 * STRIDE as usize];
        Trailer { len: 16, ..Trailer::default() }.write(&mut slots[..STRIDE as usize]);
        seal_packed(&mut slots, STRIDE as usize, stamp, (0, 3, 0));
        let words = slots.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<_> = words.collect();
        let mut after = words.clone();
        after[4] = stamp.sealed(run);
        for loads in 0..16 {
            let words = [words.clone(), after.clone()];
            let memory = Arriving { words, early: 0, loads: Cell::new(loads) };
            let end = At { region: Region(0), offset: STRIDE };
            let slot = Slot { end, stamp, capacity: 16, stride: STRIDE, slots: 3 };
            let copied = slot.copy_out(&memory, Sealing::Stamp, &mut [0; used(16)], crc32c);
            // Four words, the end of the write, and the stamp again.
            let count = (loads >= 6).then_some(3);
            assert_eq!(copied.ok().map(|found| found.count()), count, "{run:x} {loads}");
        }
    }
}

#[test]
fn a_zeroed_and_a_cleared_slot_are_no_messages() {
    let result = Trailer::open(&mut [0; 64], Stamp::default(), crc32c);
    assert_eq!(result, Err(SlotError::Stamp));
    let stamp = Stamp { epoch: 7, ticket: u32::from(u16::MAX) };
    assert_eq!(stamp.run_in(stamp.sealed(3)), Some(3));
    assert_eq!(stamp.run_in(cleared(stamp.sealed(3))), None);
}
