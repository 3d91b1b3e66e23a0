//! How an endpoint looks at its own regions while peers write to them.
//!
//! A `&[u8]` over memory that others write is undefined behaviour in Rust and a double fetch in
//! security, so there is none: bytes are copied in and out through relaxed atomic words, and a
//! protocol judges the copy. [`Words`] is that copying over any run of `AtomicU64`; fabrics
//! whose memory is addressable are built on it.
//!
//! Bytes lie in memory in the order of a little-endian word on every host.

use super::Region;
use crate::mutant::Mutant;
use crate::sync::{AtomicU64, Ordering, fence};

/// The fences left out, one at a time, for the model checker to miss (`core/tests/loom`).
pub const WEAKENED: &[Mutant] = &[UNRELEASED, UNACQUIRED];
/// The same for the last word of a write, behind which all others are to be found (F-14).
pub const UNORDERED: &[Mutant] = &[UNSEALED];
/// The same for words that publish: orders that are relaxed.
pub const RELAXED: &[Mutant] = &[RELAXED_STORE];
/// The same for remote atomics.
pub const RELAXED_ATOMICS: &[Mutant] = &[RELAXED_FETCH_ADD];

const UNRELEASED: Mutant = Mutant::new("words", "copied-in-without-release", "F-1");
const UNACQUIRED: Mutant = Mutant::new("words", "copied-out-without-acquire", "F-1");
const UNSEALED: Mutant = Mutant::new("words", "last-word-without-release", "F-14");
const RELAXED_STORE: Mutant = Mutant::new("words", "stored-without-release", "F-1");
const RELAXED_FETCH_ADD: Mutant = Mutant::new("words", "added-without-release", "F-1");

/// An endpoint's own regions, word by word. Offsets are in bytes.
///
/// # Panics
/// Every method panics when the range does not lie inside the region, or when a word is loaded or
/// stored at an offset that is no multiple of 8: addresses of own memory come from configuration,
/// never from a peer.
pub trait Memory {
    /// The word at `offset`; everything written before it was stored is visible afterwards.
    fn load(&self, region: Region, offset: u32) -> u64;

    /// The words from `offset` on, of which the last is loaded first: the others are at least as
    /// new, which is what a write that ends there needs (F-14).
    #[inline]
    fn load_end<const WORDS: usize>(&self, region: Region, offset: u32) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for index in (0..WORDS).rev() {
            words[index] = self.load(region, offset + 8 * index as u32);
        }
        words
    }

    /// The last words of `count` slots of `stride` bytes each, from `offset` on, loaded slot by
    /// slot as by [`Self::load_end`], until `visit` returns `false`. Fabrics may find the region
    /// once for all slots.
    #[inline]
    fn load_ends<const WORDS: usize>(
        &self,
        region: Region,
        (offset, stride, count): (u32, u32, u32),
        mut visit: impl FnMut([u64; WORDS]) -> bool,
    ) {
        let len = 8 * WORDS as u32;
        (1..=count).all(|end| visit(self.load_end(region, offset + end * stride - len)));
    }

    /// Sets the word at `offset`; peers that see it see everything stored before.
    fn store(&self, region: Region, offset: u32, value: u64);

    /// Sets `bits` in the word at `offset`, which no peer writes: as a load and a [`Self::store`].
    #[inline]
    fn set_bits(&self, region: Region, offset: u32, bits: u64) {
        self.store(region, offset, self.load(region, offset) | bits);
    }

    /// Copies from `offset` into private memory.
    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]);

    /// Copies private bytes to `offset`.
    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]);

    /// Whether `bytes` lie at `offset`, each of which is looked at once: a judgement like that of
    /// a copy, for less.
    fn holds(&self, region: Region, offset: u32, bytes: &[u8]) -> bool {
        are_copied(bytes, (offset..).step_by(CHUNK), |at, copy| self.copy_out(region, at, copy))
    }
}

/// Own regions that are runs of words: what [`Memory`] needs of a fabric whose memory is
/// addressable.
pub trait WordMemory {
    /// The words of `region`.
    ///
    /// # Panics
    /// When there is no such region; or the run is empty, and each access to it panics.
    fn words(&self, region: Region) -> Words<'_>;

    /// Copies all of `words` to `into`, which is as long, faster than word by word; whether it did.
    /// Ordered as [`Words::copy_out`].
    fn copy_out_long(&self, words: Words<'_>, into: &mut [u8]) -> bool {
        let _ = (words, into);
        false
    }

    /// Copies `bytes` to all of `words`, as long as they are, faster than word by word; whether it
    /// did. Ordered as [`Words::copy_in`].
    fn copy_in_long(&self, words: Words<'_>, bytes: &[u8]) -> bool {
        let _ = (words, bytes);
        false
    }
}

/// From how many bytes on a copy is long.
const LONG: usize = 2048;

/// The bytes of a long copy that are whole words; none of a short one, or from within a word.
const fn whole_words(offset: u32, len: usize) -> Option<usize> {
    if len < LONG || !offset.is_multiple_of(8) { None } else { Some(len - len % 8) }
}

impl<M: WordMemory> Memory for M {
    // The words at each place: a call costs as much as the access.
    #[inline(always)]
    fn load(&self, region: Region, offset: u32) -> u64 {
        self.words(region).load(offset as usize)
    }

    #[inline(always)]
    fn load_end<const WORDS: usize>(&self, region: Region, offset: u32) -> [u64; WORDS] {
        self.words(region).load_end(offset as usize)
    }

    #[inline(always)]
    fn load_ends<const WORDS: usize>(
        &self,
        region: Region,
        slots: (u32, u32, u32),
        visit: impl FnMut([u64; WORDS]) -> bool,
    ) {
        self.words(region).load_ends(slots, visit);
    }

    #[inline(always)]
    fn store(&self, region: Region, offset: u32, value: u64) {
        self.words(region).store(offset as usize, value);
    }

    #[inline(always)]
    fn set_bits(&self, region: Region, offset: u32, bits: u64) {
        let word = self.words(region).word(offset as usize);
        // SYNC: words-publish. As in `Words::store`.
        word.store(word.load(Ordering::Relaxed) | bits, Ordering::Release);
    }

    #[inline]
    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        let (words, at) = (self.words(region), offset as usize);
        if let Some(whole) = whole_words(offset, into.len()) {
            let (long, rest) = into.split_at_mut(whole);
            if self.copy_out_long(words.range(at, whole), long) {
                return words.copy_out(at + whole, rest);
            }
        }
        words.copy_out(at, into);
    }

    #[inline]
    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]) {
        let (words, at) = (self.words(region), offset as usize);
        if let Some(whole) = whole_words(offset, bytes.len()) {
            let (long, rest) = bytes.split_at(whole);
            if self.copy_in_long(words.range(at, whole), long) {
                return words.copy_in(at + whole, rest);
            }
        }
        words.copy_in(at, bytes);
    }

    #[inline]
    fn holds(&self, region: Region, offset: u32, bytes: &[u8]) -> bool {
        self.words(region).holds(offset as usize, bytes)
    }
}

/// How many bytes are copied at once where they are compared by a copy.
const CHUNK: usize = 64;

/// Whether `bytes` are what `copy_out` finds, a chunk at each of `offsets`.
fn are_copied<O>(
    bytes: &[u8],
    offsets: impl Iterator<Item = O>,
    copy_out: impl Fn(O, &mut [u8]),
) -> bool {
    let mut copy = [0; CHUNK];
    offsets.zip(bytes.chunks(CHUNK)).all(|(at, chunk)| {
        let copy = &mut copy[..chunk.len()];
        copy_out(at, copy);
        copy == chunk
    })
}

/// A run of shared words: the copying that all addressable fabrics share.
///
/// Loads acquire and stores release as a whole: words copied out are at least as new as any
/// word loaded before, words copied in are seen no later than any word stored after.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(pub &'a [AtomicU64]);

/// What is copied in from here on is seen no earlier than what was copied in before.
#[inline(always)]
fn release() {
    if !UNRELEASED.is_planted() {
        // SYNC: words-publish. A write of words after this is found by the acquire below.
        fence(Ordering::Release);
    }
}

/// The last word of a write, which comes next, is seen no earlier than those before it (F-14).
#[inline(always)]
fn release_end() {
    if !UNSEALED.is_planted() {
        release();
    }
}

/// What is copied out from here on is at least as new as what was copied out before.
#[inline(always)]
fn acquire() {
    if !UNACQUIRED.is_planted() {
        // SYNC: words-publish. Follows the relaxed loads of words written after the release above.
        fence(Ordering::Acquire);
    }
}

/// `offset / 8`, or an index beyond every run if `offset` is no multiple of 8: one instruction, and
/// no check besides that of the bounds.
#[inline(always)]
const fn word_index(offset: usize) -> usize {
    offset.rotate_right(3)
}

/// The end of an access to what a run of `words` does not have.
// By value: formatting takes references, which would put the arguments in memory at each access.
#[cold]
#[inline(never)]
fn no_word(offset: usize, words: usize) -> ! {
    panic!("no word at byte {offset} of {}", 8 * words)
}

/// Loads the first `WORDS` of `words`, in reverse order.
///
/// # Panics
/// When there are fewer.
#[inline(always)]
fn load_last_first<const WORDS: usize>(words: &[AtomicU64]) -> [u64; WORDS] {
    let words: &[AtomicU64; WORDS] = words.first_chunk().expect("words that end in the run");
    let mut loaded = [0; WORDS];
    for index in (0..WORDS).rev() {
        loaded[index] = words[index].load(Ordering::Relaxed);
        acquire();
    }
    loaded
}

impl<'a> Words<'a> {
    /// The sub-run of `len` bytes from `offset`, both multiples of 8.
    ///
    /// # Panics
    /// When the range leaves the run.
    #[must_use]
    pub fn range(self, offset: usize, len: usize) -> Self {
        Self(&self.0[offset / 8..(offset + len) / 8])
    }

    /// The sub-run from byte `offset` on; `None` if it leaves the run or `offset` is no multiple of
    /// 8.
    #[must_use]
    #[inline(always)]
    pub fn starting_at(self, offset: usize) -> Option<Self> {
        self.0.get(word_index(offset)..).map(Self)
    }

    /// The word that holds byte `offset`, a multiple of 8.
    ///
    /// # Panics
    /// When there is no such word.
    #[must_use]
    #[inline(always)]
    pub fn word(self, offset: usize) -> &'a AtomicU64 {
        match self.0.get(word_index(offset)) {
            Some(word) => word,
            None => no_word(offset, self.0.len()),
        }
    }

    /// Loads the word at byte `offset`.
    #[inline(always)]
    #[must_use]
    pub fn load(self, offset: usize) -> u64 {
        let value = self.word(offset).load(Ordering::Relaxed);
        acquire();
        value
    }

    /// Loads words from byte `offset` on, the last one first.
    ///
    /// # Panics
    /// When the range leaves the run, or `offset` is no multiple of 8.
    #[inline(always)]
    #[must_use]
    pub fn load_end<const WORDS: usize>(self, offset: usize) -> [u64; WORDS] {
        match self.starting_at(offset) {
            Some(words) => load_last_first(words.0),
            None => no_word(offset, self.0.len()),
        }
    }

    /// Loads the last `WORDS` words of `count` slots of `stride` bytes each, from byte `offset` on:
    /// slot by slot, in each the last word first, until `visit` returns `false`.
    ///
    /// # Panics
    /// When the slots leave the run or are shorter than `WORDS`, or when `offset` or `stride` is no
    /// multiple of 8.
    #[inline(always)]
    pub fn load_ends<const WORDS: usize>(
        self,
        (offset, stride, count): (u32, u32, u32),
        mut visit: impl FnMut([u64; WORDS]) -> bool,
    ) {
        let [offset, stride, count] = [offset, stride, count].map(|it| it as usize);
        assert!((offset | stride).is_multiple_of(8), "slots of {stride} bytes at byte {offset}");
        let mut slots = self.range(offset, count * stride).0.chunks_exact(stride / 8);
        slots.all(|slot| visit(load_last_first(&slot[slot.len() - WORDS..])));
    }

    /// Stores the word at byte `offset`.
    #[inline(always)]
    pub fn store(self, offset: usize, value: u64) {
        let planted = RELAXED_STORE.is_planted();
        // SYNC: words-publish. Who loads this finds what was copied in before.
        let order = if planted { Ordering::Relaxed } else { Ordering::Release };
        self.word(offset).store(value, order);
    }

    /// Adds to the word at byte `offset`, and returns what it was.
    #[inline(always)]
    #[must_use]
    pub fn fetch_add(self, offset: usize, add: u64) -> u64 {
        let planted = RELAXED_FETCH_ADD.is_planted();
        // SYNC: words-publish. A store and a load in one, ordered as both.
        let order = if planted { Ordering::Relaxed } else { Ordering::AcqRel };
        self.word(offset).fetch_add(add, order)
    }

    /// Sets the word at byte `offset` to `new` if it is `expected`, and returns what it was.
    #[inline]
    #[must_use]
    pub fn compare_swap(self, offset: usize, expected: u64, new: u64) -> u64 {
        // SYNC: words-publish. As in `fetch_add`.
        let swapped =
            self.word(offset).compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        swapped.unwrap_or_else(|old| old)
    }

    /// Copies `into.len()` bytes out, from byte `offset`.
    #[inline]
    pub fn copy_out(self, offset: usize, into: &mut [u8]) {
        let (lead, first) = (offset % 8, offset / 8);
        if lead != 0 {
            return self.copy_out_unaligned(offset, into);
        }
        let source = &self.0[first..first + into.len().div_ceil(8)];
        let (whole, tail) = into.as_chunks_mut::<8>();
        for (chunk, word) in whole.iter_mut().zip(source) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if let (false, Some(word)) = (tail.is_empty(), source.last()) {
            let bytes = word.load(Ordering::Relaxed).to_le_bytes();
            tail.copy_from_slice(&bytes[..tail.len()]);
        }
        acquire();
    }

    /// Whether `bytes` lie at byte `offset`; each word is loaded once.
    #[inline]
    #[must_use]
    pub fn holds(self, offset: usize, bytes: &[u8]) -> bool {
        if !offset.is_multiple_of(8) {
            return are_copied(bytes, (offset..).step_by(CHUNK), |at, copy| {
                self.copy_out(at, copy);
            });
        }
        let first = offset / 8;
        let source = &self.0[first..first + bytes.len().div_ceil(8)];
        let (whole, tail) = bytes.as_chunks::<8>();
        // No early end: what is compared is nearly always the same, and a loop that cannot end
        // early compares several words at once.
        let differences = whole
            .iter()
            .zip(source)
            .map(|(chunk, word)| word.load(Ordering::Relaxed) ^ u64::from_le_bytes(*chunk));
        let mut differs = differences.fold(0, |all, bits| all | bits);
        if let (false, Some(word)) = (tail.is_empty(), source.last()) {
            let seen = word.load(Ordering::Relaxed).to_le_bytes();
            differs |= u64::from(seen[..tail.len()] != *tail);
        }
        acquire();
        differs == 0
    }

    /// Copies all of `source` to the beginning of this run, the last word first, as readers seldom
    /// look at it while it is arriving: the way of a write from a region, of which F-14 says
    /// nothing.
    ///
    /// # Panics
    /// When `source` is longer than this run.
    #[inline]
    pub fn copy_from(self, source: Words<'_>) {
        release();
        for (to, from) in self.0[..source.0.len()].iter().zip(source.0).rev() {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        acquire();
    }

    /// Stores `words` from the beginning of this run on, each as it comes, where they are relaxed
    /// loads of other memory: the way of a read, which sees the head of a message first.
    #[inline]
    pub fn copy_each(self, words: impl Iterator<Item = u64>) {
        release();
        for (to, word) in self.0.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        acquire();
    }

    #[inline(never)]
    fn copy_out_unaligned(self, offset: usize, into: &mut [u8]) {
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let lead = at % 8;
            let count = (8 - lead).min(rest.len());
            let bytes = self.0[at / 8].load(Ordering::Relaxed).to_le_bytes();
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&bytes[lead..lead + count]);
            rest = later;
            at += count;
        }
        acquire();
    }

    /// Copies `bytes` in, to byte `offset`: whole words at once, and the last word, who loads which
    /// finds the others (F-14), behind all others. Neighbouring bytes of a half-covered word
    /// survive, even when a peer writes them meanwhile.
    #[inline]
    pub fn copy_in(self, offset: usize, bytes: &[u8]) {
        release();
        if !offset.is_multiple_of(8) || !bytes.len().is_multiple_of(8) {
            return self.copy_in_unaligned(offset, bytes);
        }
        let words = bytes.as_chunks::<8>().0;
        let target = &self.0[offset / 8..][..words.len()];
        // Backwards: a reader of a broadcast looks at the head first, and so seldom copies one that
        // is still arriving. Nothing relies on it (F-3).
        let put = |to: &AtomicU64, word: &[u8; 8]| {
            to.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        };
        let put_all = |target: &[AtomicU64], words: &[[u8; 8]]| {
            target.iter().zip(words).rev().for_each(|(to, word)| put(to, word));
        };
        // A short message of a mailbox is four words: a loop would cost more than the stores.
        if let Some((head, [a, b, c, last])) = words.split_last_chunk()
            && let Some((to_head, [to_a, to_b, to_c, to_last])) = target.split_last_chunk()
        {
            put(to_c, c);
            put(to_b, b);
            put(to_a, a);
            put_all(to_head, head);
            release_end();
            put(to_last, last);
        } else if let (Some((last, head)), Some((to_last, to_head))) =
            (words.split_last(), target.split_last())
        {
            put_all(to_head, head);
            release_end();
            put(to_last, last);
        }
    }

    #[inline(never)]
    fn copy_in_unaligned(self, offset: usize, bytes: &[u8]) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let lead = at % 8;
            let (now, later) = rest.split_at((8 - lead).min(rest.len()));
            if later.is_empty() {
                release_end();
            }
            let word = &self.0[at / 8];
            let mut seen = word.load(Ordering::Relaxed);
            loop {
                let mut value = seen.to_le_bytes();
                value[lead..lead + now.len()].copy_from_slice(now);
                let value = u64::from_le_bytes(value);
                match word.compare_exchange_weak(seen, value, Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => break,
                    Err(newer) => seen = newer,
                }
            }
            at += now.len();
            rest = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0x5555_5555_5555_5555)).collect()
    }

    proptest! {
        #[test]
        fn bytes_come_back_from_where_they_were_put(
            offset in 0usize..40,
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let store = words(10);
            let words = Words(&store);
            words.copy_in(offset, &bytes);
            let mut all = vec![0; 80];
            words.copy_out(0, &mut all);
            let mut expected = vec![0x55; 80];
            expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
            prop_assert_eq!(&all, &expected);
            let mut back = vec![0; bytes.len()];
            words.copy_out(offset, &mut back);
            prop_assert_eq!(back, bytes);
        }
    }

    proptest! {
        #[test]
        fn memory_holds_what_was_put_there_and_nothing_else(
            offset in 0usize..20,
            bytes in proptest::collection::vec(any::<u8>(), 1..150),
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
        ) {
            let store = words(22);
            let words = Words(&store);
            words.copy_in(offset, &bytes);
            prop_assert!(words.holds(offset, &bytes));
            let mut other = bytes;
            let at = at.index(other.len());
            other[at] ^= flip;
            prop_assert!(!words.holds(offset, &other));
        }

        #[test]
        fn words_are_copied_in_place(bytes in proptest::collection::vec(any::<u8>(), 80)) {
            let (source, one, other) = (words(10), words(12), words(12));
            Words(&source).copy_in(0, &bytes);
            Words(&one).range(8, 80).copy_from(Words(&source));
            let loads = source.iter().map(|word| word.load(Ordering::Relaxed));
            Words(&other).range(8, 80).copy_each(loads);
            for target in [one, other] {
                prop_assert!(Words(&target).holds(8, &bytes));
                prop_assert!(Words(&target).holds(0, &[0x55; 8]));
                prop_assert!(Words(&target).holds(88, &[0x55; 8]));
            }
        }
    }

    #[test]
    fn a_word_is_little_endian_on_every_host() {
        let store = words(1);
        Words(&store).copy_in(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Words(&store).load(0), 0x0807_0605_0403_0201);
    }

    #[test]
    #[should_panic(expected = "range end index")]
    fn a_copy_past_the_end_is_a_bug_of_the_caller() {
        Words(&words(1)).copy_out(0, &mut [0; 9]);
    }
}
