//! A record that outlives the process that writes it: two sealed slots, written in turn.
//!
//! ```text
//!   slot:  number  len  seal │ bytes …     the slot with the higher number, whose seal holds,
//!                                          is the record
//! ```
//!
//! A writer that is killed anywhere in a save leaves the slot of the record before as it was, and
//! one whose seal does not hold: the seal covers all other words, so that the order in which they
//! were stored does not matter. There is one writer at a time: the next one starts after the death
//! of the one before.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checksum::crc32c;
use super::{Mapping, Segment, SegmentError};

/// Words of a slot before its bytes: number, length, seal.
const HEADER_WORDS: usize = 3;
const NUMBER: usize = 0;
const LEN: usize = 1;
const SEAL: usize = 2;

/// A record of up to so many bytes, in memory that a supervisor keeps.
#[derive(Debug)]
pub struct TwoSlots {
    mapping: Mapping,
    capacity: usize,
    /// The number of the record; 0 for none.
    number: u64,
}

impl TwoSlots {
    /// The memory for a record of up to `capacity` bytes.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn segment(name: &str, capacity: usize) -> Result<Segment, SegmentError> {
        Segment::create(name, Self::len(capacity))
    }

    /// Takes over the memory behind `fd`, made for `capacity` bytes.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn open(fd: BorrowedFd<'_>, capacity: usize) -> Result<Self, SegmentError> {
        let mapping = Mapping::writable(fd, Self::len(capacity))?;
        let mut slots = Self { mapping, capacity, number: 0 };
        slots.number = slots.newest().map_or(0, |(number, _)| number);
        Ok(slots)
    }

    /// How many bytes a record may have.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The record, if one was saved.
    #[must_use]
    pub fn load(&self) -> Option<Vec<u8>> {
        self.newest().map(|(_, bytes)| bytes)
    }

    /// Replaces the record. Neither allocates nor makes a system call; whether there was room.
    pub fn save(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.capacity {
            return false;
        }
        let number = self.number + 1;
        let slot = self.slot(number);
        slot[NUMBER].store(0, Ordering::Relaxed);
        for (word, chunk) in slot[HEADER_WORDS..].iter().zip(bytes.chunks(Segment::WORD_LEN)) {
            let mut padded = [0; Segment::WORD_LEN];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        slot[LEN].store(bytes.len() as u64, Ordering::Relaxed);
        slot[SEAL].store(seal(number, bytes), Ordering::Relaxed);
        slot[NUMBER].store(number, Ordering::Relaxed);
        self.number = number;
        true
    }

    fn newest(&self) -> Option<(u64, Vec<u8>)> {
        let sealed = [0, 1].into_iter().filter_map(|number| self.read(number));
        sealed.max_by_key(|(number, _)| *number)
    }

    /// The slot of this parity, if it holds a record.
    fn read(&self, parity: u64) -> Option<(u64, Vec<u8>)> {
        let slot = self.slot(parity);
        let number = slot[NUMBER].load(Ordering::Relaxed);
        let len = usize::try_from(slot[LEN].load(Ordering::Relaxed)).ok()?;
        if number == 0 || len > self.capacity {
            return None;
        }
        let words = slot[HEADER_WORDS..].iter().map(|word| word.load(Ordering::Relaxed));
        let mut bytes: Vec<u8> =
            words.take(len.div_ceil(Segment::WORD_LEN)).flat_map(u64::to_ne_bytes).collect();
        bytes.truncate(len);
        (seal(number, &bytes) == slot[SEAL].load(Ordering::Relaxed)).then_some((number, bytes))
    }

    fn slot(&self, number: u64) -> &[AtomicU64] {
        let words = Self::len(self.capacity) / Segment::WORD_LEN / 2;
        let first = if number.is_multiple_of(2) { 0 } else { words };
        &self.mapping.words()[first..first + words]
    }

    const fn len(capacity: usize) -> usize {
        2 * (HEADER_WORDS + capacity.div_ceil(Segment::WORD_LEN)) * Segment::WORD_LEN
    }
}

/// The checksums of the bytes, and of everything.
fn seal(number: u64, bytes: &[u8]) -> u64 {
    let of_bytes = u64::from(crc32c(bytes));
    let words = [number, bytes.len() as u64, of_bytes].map(u64::to_le_bytes);
    u64::from(crc32c(words.as_flattened())) << 32 | of_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: usize = 21;

    fn open(segment: &Segment) -> TwoSlots {
        TwoSlots::open(segment.writable_fd(), CAPACITY).unwrap()
    }

    #[test]
    fn m9_the_next_writer_finds_the_last_record() {
        let segment = TwoSlots::segment("weft-test", CAPACITY).unwrap();
        assert_eq!(open(&segment).load(), None);
        for record in [&b"a"[..], b"", &[7; CAPACITY], b"12345678", b"123456789"] {
            assert!(open(&segment).save(record));
            assert_eq!(open(&segment).load().as_deref(), Some(record));
        }
        let mut slots = open(&segment);
        assert!(!slots.save(&[0; CAPACITY + 1]));
        assert_eq!(slots.load().as_deref(), Some(&b"123456789"[..]));
    }

    /// A writer that is killed anywhere, with any of its words stored by then: the record before
    /// or the new one, and never a mixture.
    #[test]
    fn m9_a_save_that_is_cut_off_leaves_the_record_before() {
        let segment = TwoSlots::segment("weft-test", CAPACITY).unwrap();
        let mut slots = open(&segment);
        assert!(slots.save(b"first") && slots.save(b"before"));
        let before = words(&slots);
        assert!(slots.save(b"after, and longer"));
        let after = words(&slots);
        // The third record is in the second half.
        let half = before.len() / 2;
        let target = &slots.mapping.words()[half..];
        for stored in 0..1_u32 << half {
            let is_stored = |at: usize| stored >> at & 1 == 1;
            for (at, word) in target.iter().enumerate() {
                let from = if is_stored(at) { &after } else { &before };
                word.store(from[half + at], Ordering::Relaxed);
            }
            let now = words(&slots);
            let expected = if now == after { &b"after, and longer"[..] } else { b"before" };
            assert_eq!(open(&segment).load().as_deref(), Some(expected), "{stored:b}");
        }
    }

    fn words(slots: &TwoSlots) -> Vec<u64> {
        slots.mapping.words().iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}
