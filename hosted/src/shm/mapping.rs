//! A segment as this process sees it: words that anyone may change at any time.
//!
//! Two types for two rights. [`Mapping`] lends its words as atomics. [`ReadOnlyMapping`] lends
//! nothing: the standard library promises only relaxed loads of up to pointer size on memory
//! that is mapped read-only, so it has methods for just those, and a store through it cannot be
//! written down. Where an order is needed, follow the load with an acquire fence.
//!
//! Neither checks what the words mean; a reader copies out and checks the copy.

use std::os::fd::BorrowedFd;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use weft_core::fabric::Words;

use super::bulk;
use super::pages::Pages;
use super::{Segment, SegmentError};

/// Loads from read-only pages are promised for pointer-sized words only.
const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "64-bit processors only");

/// A segment mapped for reading and writing.
#[derive(Debug)]
pub struct Mapping {
    pages: Pages,
}

impl Mapping {
    /// No segment, and no words.
    pub(super) const NONE: Self = Self { pages: Pages::NONE };

    /// Maps the segment of `len` bytes behind `fd`.
    ///
    /// # Errors
    /// [`SegmentError`] if `fd` is unsealed, not `len` bytes long, or without the right to write.
    pub fn writable(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SegmentError> {
        Ok(Self { pages: Pages::writable(fd, len)? })
    }

    /// All words of the segment.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        words_of(&self.pages)
    }
}

/// A segment mapped for reading.
#[derive(Debug)]
pub struct ReadOnlyMapping {
    pages: Pages,
}

impl ReadOnlyMapping {
    /// Maps the segment of `len` bytes behind `fd`, which may be a writable or a read-only one.
    ///
    /// # Errors
    /// [`SegmentError`] if `fd` is unsealed or not `len` bytes long.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SegmentError> {
        Ok(Self { pages: Pages::read_only(fd, len)? })
    }

    /// Length in words.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.pages.word_count()
    }

    /// One word, by a relaxed load.
    ///
    /// # Panics
    /// If `word_index` is not below [`ReadOnlyMapping::word_count`].
    #[must_use]
    #[inline]
    pub fn load(&self, word_index: usize) -> u64 {
        words_of(&self.pages)[word_index].load(Ordering::Relaxed)
    }

    /// Copies the words from byte `offset` on, a multiple of a word's length, to all of `to`: the
    /// way of a read, which sees the head of a short message first.
    ///
    /// # Panics
    /// If the range does not lie within the segment.
    pub fn copy_words(&self, offset: usize, to: Words<'_>) {
        let first = offset / Segment::WORD_LEN;
        let words = &words_of(&self.pages)[first..first + to.0.len()];
        if !bulk::copy(to.0, words) {
            to.copy_each(words.iter().map(|word| word.load(Ordering::Relaxed)));
        }
    }

    /// Copies the bytes from `offset` on, each word by one relaxed load. Words may change
    /// between the loads.
    ///
    /// # Panics
    /// If the range does not lie within the segment.
    pub fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let end = offset.checked_add(out.len()).expect("range ends within the address space");
        assert!(end <= self.pages.len(), "range {offset}..{end} of {} bytes", self.pages.len());
        let (mut at, mut rest) = (offset, out);
        if offset.is_multiple_of(Segment::WORD_LEN) {
            let (first, whole) = (offset / Segment::WORD_LEN, rest.len() / Segment::WORD_LEN);
            let (len, words) = (whole * Segment::WORD_LEN, words_of(&self.pages));
            if bulk::copy_out(&mut rest[..len], &words[first..first + whole]) {
                (at, rest) = (at + len, &mut rest[len..]);
            }
        }
        if at.is_multiple_of(Segment::WORD_LEN) {
            let source = &words_of(&self.pages)[at / Segment::WORD_LEN..];
            let mut whole = rest.chunks_exact_mut(Segment::WORD_LEN);
            for (chunk, word) in whole.by_ref().zip(source) {
                chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
                at += Segment::WORD_LEN;
            }
            rest = whole.into_remainder();
        }
        while !rest.is_empty() {
            let skip = at % Segment::WORD_LEN;
            let count = rest.len().min(Segment::WORD_LEN - skip);
            let word = self.load(at / Segment::WORD_LEN).to_ne_bytes();
            let (head, tail) = rest.split_at_mut(count);
            head.copy_from_slice(&word[skip..skip + count]);
            at += count;
            rest = tail;
        }
    }
}

/// For read-only pages the words may be loaded relaxed, and nothing else.
#[inline]
fn words_of(pages: &Pages) -> &[AtomicU64] {
    let count = pages.word_count();
    // SAFETY: the pages are mapped for so many words while they are borrowed, the base is aligned
    // to a word and `AtomicU64` has the layout of `u64`, for which every bit pattern is valid.
    // Other threads and processes may write at any time, which atomics allow. All accesses of
    // this mapping are of this one size, because its pages are owned by a `Mapping` or a
    // `ReadOnlyMapping`; the latter makes no access but relaxed loads and those of `bulk`, which
    // Rust's memory model does not see.
    unsafe { slice::from_raw_parts(pages.base().cast::<AtomicU64>().as_ptr(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const LEN: usize = 2 * 4096;

    fn segment() -> Segment {
        Segment::create("weft-test", LEN).unwrap()
    }

    #[test]
    fn fresh_segment_is_zero() {
        let mapping = Mapping::writable(segment().writable_fd(), LEN).unwrap();
        assert_eq!(mapping.words().len(), LEN / 8);
        assert!(mapping.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn mappings_of_one_segment_see_each_other_and_outlive_it() {
        let segment = segment();
        let left = Mapping::writable(segment.writable_fd(), LEN).unwrap();
        let right = Mapping::writable(segment.writable_fd(), LEN).unwrap();
        let reader = ReadOnlyMapping::new(segment.read_only_fd().unwrap().as_fd(), LEN).unwrap();
        drop(segment);

        left.words()[5].store(41, Ordering::Relaxed);
        assert_eq!(right.words()[5].fetch_add(1, Ordering::Relaxed), 41);
        assert_eq!(reader.load(5), 42);
        assert_eq!(reader.word_count(), left.words().len());
    }

    #[test]
    fn copies_out_at_any_offset() {
        let segment = segment();
        let writer = Mapping::writable(segment.writable_fd(), LEN).unwrap();
        let reader = ReadOnlyMapping::new(segment.writable_fd(), LEN).unwrap();
        let bytes: Vec<u8> = (1..=32).collect();
        for (word, chunk) in writer.words().iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_ne_bytes(chunk.try_into().unwrap()), Ordering::Relaxed);
        }
        for start in 0..=bytes.len() {
            for end in start..=bytes.len() {
                let mut out = vec![0; end - start];
                reader.copy_out(start, &mut out);
                assert_eq!(out, bytes[start..end]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "range 8185..8193 of 8192 bytes")]
    fn copy_past_the_end_is_a_bug() {
        let reader = ReadOnlyMapping::new(segment().writable_fd(), LEN).unwrap();
        reader.copy_out(LEN - 7, &mut [0; 8]);
    }

    #[test]
    fn threads_share_a_mapping() {
        let mapping = Mapping::writable(segment().writable_fd(), LEN).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        mapping.words()[0].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(mapping.words()[0].load(Ordering::Relaxed), 2000);
    }
}
