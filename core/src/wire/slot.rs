//! The slot of a mailbox or a lane: a payload and, behind it, a trailer of 24 bytes (MB-4).
//!
//! ```text
//! byte       0     2        4          8        12     14            16      20       22    24
//! payload, 0 │ len │ sender │ sequence │ crc32c │ kind │ incarnation │ epoch │ ticket │ run │
//! ```
//!
//! The slot ends with the trailer, and the payload, padded with zeros to a multiple of 8 bytes,
//! ends where the trailer begins: a short message leaves the beginning of its slot as it was. `len`
//! counts payload bytes. `incarnation` is the low half of the sender's. `epoch` and `ticket` are
//! the slot's stamp, so that bytes of an earlier use are not accepted. `run` counts the messages of
//! the same write from this one on, itself included; with 0 a slot holds no message.
//!
//! Sealed by stamps, a write of several messages of one length and one kind may be *packed*, which
//! bit 14 of the first slot's `run` says. That slot holds the first message. The next ones follow
//! in as many slots as they need, the rest of theirs stay as they were:
//!
//! ```text
//! payload │ … │ payload │ unused │ epoch │ ticket │ run
//! ```
//!
//! A payload takes its length, rounded up to words, and at least one. `ticket` is that of the slot
//! itself, and bit 15 of `run` says that the slot is part of a packed write: bits 0 to 7 count its
//! slots from this one on, bits 8 to 13 name the sender.
//!
//! How a reader knows that all of a slot has arrived ([`Sealing`]) depends on the fabric. The
//! checksum runs over padded payload and trailer, with the checksum field itself as zero.

mod packed;

use core::fmt;

use super::mutants::{CHECK_BEFORE_COPY, CHECKSUM_SKIPPED, RUN_IGNORED, STAMP_IGNORED};
use super::{u16_at, u64_at};
use crate::fabric::{At, INLINE_LEN, Memory};
use crate::ids::PeerSet;

pub use packed::{Packing, Places, Seal, seal_packed};

/// Length of the trailer in bytes.
pub const TRAILER_LEN: usize = 24;

/// The trailer and the word before it; each slot has so much.
const END_LEN: u32 = TRAILER_LEN as u32 + 8;
const INLINE_MAX: u32 = INLINE_LEN as u32;

/// Where the fields lie in the trailer that are written when a slot is sealed.
mod field {
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const CRC: usize = 8;
    pub(super) const KIND: usize = 12;
    pub(super) const STAMP: usize = 16;
}

/// A length rounded up to words.
#[inline]
const fn padded(len: usize) -> usize {
    (len + 7) & !7
}

/// The bytes at the end of a slot that a message of `len` bytes takes.
#[inline]
#[must_use]
pub const fn used(len: usize) -> usize {
    padded(len) + TRAILER_LEN
}

/// How a reader knows that all of a slot has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sealing {
    /// The checksum holds: bytes arrive in any order (F-3).
    Checksum,
    /// The stamp has arrived, and that of the last slot of the same write was seen, which is the
    /// write's last word (F-14).
    Stamp,
}

/// One use of one slot: the identity that a reader expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// The pass over the slots.
    pub epoch: u32,
    /// The slot of the pass, below 2^16.
    pub ticket: u32,
}

impl Stamp {
    /// Epoch in the low half, ticket in the high half.
    #[inline]
    #[must_use]
    pub const fn to_word(self) -> u64 {
        self.epoch as u64 | (self.ticket as u64) << 32
    }

    /// The stamp that [`Self::to_word`] made `word` from.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
        Self { epoch: word as u32, ticket: (word >> 32) as u32 }
    }

    /// The last word of a slot with this stamp, the first of `run` slots of one write.
    #[inline]
    #[must_use]
    pub const fn sealed(self, run: u16) -> u64 {
        self.epoch as u64 | (self.ticket as u16 as u64) << 32 | (run as u64) << RUN_SHIFT
    }

    /// The last word of a slot with this stamp in a packed write of `sender`, the first of `slots`
    /// that are left of it.
    #[inline]
    #[must_use]
    const fn sealed_part(self, slots: u32, sender: u16) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "a write has fewer slots")]
        self.sealed(PART | sender << PART_SENDER_SHIFT | slots as u16)
    }

    /// The run in `word`, the last one of a slot, if it carries this stamp.
    #[inline]
    #[must_use]
    pub const fn run_in(self, word: u64) -> Option<u16> {
        // What it has beside this stamp: the run, or more than that.
        let beside = word ^ self.sealed(0);
        let run = (beside >> RUN_SHIFT) as u16;
        if run == 0 || beside << (64 - RUN_SHIFT) != 0 { None } else { Some(run) }
    }
}

const RUN_SHIFT: u32 = 48;
const RUN_MASK: u64 = (1 << RUN_SHIFT) - 1;
/// From the first word of a trailer to that of the next in a write.
const SEQUENCE_STEP: u64 = 1 << 32;
/// From the last word of a slot to that of the next in a write: a ticket more, and a slot less.
const SEALED_STEP: u64 = (1_u64 << 32).wrapping_sub(1 << RUN_SHIFT);
/// Where the kind lies in the second word of a trailer.
const KIND_MASK: u64 = 0xffff << 32;

/// In the run of a slot: the first one of a packed write.
const PACKED: u16 = 1 << 14;
/// In the run of a slot: one of a packed write behind the first.
const PART: u16 = 1 << 15;
/// Where the sender lies in the run of such a slot.
const PART_SENDER_SHIFT: u32 = 8;
const _: () = assert!(PeerSet::CAPACITY << PART_SENDER_SHIFT <= PACKED as usize);
const _: () = assert!(INLINE_LEN / END_LEN as usize <= 1 << (PART_SENDER_SHIFT - 1));

/// `word`, the last one of a slot, changed so that no reader accepts the slot.
#[must_use]
pub const fn cleared(word: u64) -> u64 {
    word & RUN_MASK
}

/// The trailer, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trailer {
    /// Payload bytes.
    pub len: u16,
    /// The sender's peer number.
    pub sender: u16,
    /// The sender's sequence number.
    pub sequence: u32,
    /// The use of the slot.
    pub stamp: Stamp,
    /// Meaning of the payload, defined by the application.
    pub kind: u16,
    /// The low 16 bits of the sender's incarnation: each counts its messages from 0.
    pub incarnation: u16,
    /// The messages of the same write from this one on; 0 before it is sealed. As [`Self::count`]
    /// has it: the first one of a packed write says so here.
    pub run: u16,
}

impl Trailer {
    /// Whether it is that of a packed write, whose messages [`Self::count`] counts.
    #[inline]
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        self.run & PACKED != 0
    }

    /// The messages of the same write from this one on.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u32 {
        (self.run & !PACKED) as u32
    }
}

/// Why a copy of a slot holds no message. Nothing was read past `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotError {
    /// The slot carries the stamp of another use, or none yet, or the last slot of its write does.
    Stamp,
    /// The length does not fit into the slot, or the run into the slots.
    Length,
    /// The checksum is wrong: torn, still arriving, or garbage.
    Checksum,
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stamp => "the slot carries another stamp",
            Self::Length => "the length does not fit into the slot",
            Self::Checksum => "the checksum does not hold",
        })
    }
}

impl core::error::Error for SlotError {}

/// Seals the slots of one write by their stamps: sets stamp, run and sequence. The first gets
/// `stamp`, `run` and `sequence`, and the next ones what follows from these. Each of `slots` ends
/// with a slot whose trailer was [written](Trailer::write).
///
/// # Panics
/// When one of `slots` is shorter than a trailer: a bug of the caller.
#[inline]
pub fn seal_by_stamps<'a>(
    slots: impl Iterator<Item = &'a mut [u8]>,
    stamp: Stamp,
    run: u16,
    mut sequence: u32,
) {
    let mut sealed = stamp.sealed(run);
    for slot in slots {
        let trailer = trailer_of(slot);
        trailer[field::SEQUENCE..field::CRC].copy_from_slice(&sequence.to_le_bytes());
        trailer[field::STAMP..].copy_from_slice(&sealed.to_le_bytes());
        sequence = sequence.wrapping_add(1);
        sealed = sealed.wrapping_add(SEALED_STEP);
    }
}

/// Computes the checksum of the payload and the trailer of `slot`, which has its stamp.
///
/// # Panics
/// When `slot` is shorter than its payload and a trailer: a bug of the caller.
#[inline]
pub fn checksum(slot: &mut [u8], crc32c: impl Fn(&[u8]) -> u32) {
    let len = usize::from(u16_at(trailer_of(slot), 0));
    let start = slot.len() - used(len);
    trailer_of(slot)[field::CRC..field::KIND].copy_from_slice(&[0; 4]);
    let crc = crc32c(&slot[start..]);
    trailer_of(slot)[field::CRC..field::KIND].copy_from_slice(&crc.to_le_bytes());
}

/// Both, for a write of one slot or the first of `run`.
///
/// # Panics
/// As [`checksum`].
#[inline]
pub fn seal(slot: &mut [u8], stamp: Stamp, run: u16, sequence: u32, crc32c: impl Fn(&[u8]) -> u32) {
    seal_by_stamps(core::iter::once(&mut *slot), stamp, run, sequence);
    checksum(slot, crc32c);
}

/// Length and kind of the message in `slot`, whose trailer was [written](Trailer::write).
///
/// # Panics
/// When `slot` is shorter than a trailer: a bug of the caller.
#[inline]
#[must_use]
pub fn form_of(slot: &[u8]) -> (u16, u16) {
    let trailer = &slot[slot.len() - TRAILER_LEN..];
    (u16_at(trailer, 0), u16_at(trailer, field::KIND))
}

/// The last bytes of `slot`.
#[inline]
fn trailer_of(slot: &mut [u8]) -> &mut [u8; TRAILER_LEN] {
    slot.last_chunk_mut().expect("a slot holds a trailer")
}

/// What a glance at a slot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// It carries the stamp of another use, or none yet.
    Absent,
    /// The trailer of a message whose payload fits, and the last word of the payload. The message
    /// is whole if its run is 1, or if the last slot of its write has been seen.
    Stamped(Trailer, u64),
    /// [`Slot::copy_out`] says more.
    Unclear,
}

/// A slot that a reader looks at.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Where it ends.
    pub end: At,
    /// The use of it that is expected.
    pub stamp: Stamp,
    /// The longest payload.
    pub capacity: u16,
    /// Bytes from one slot to the next.
    pub stride: u32,
    /// All tickets are below.
    pub slots: u32,
}

impl Slot {
    /// Where a payload of `len` bytes begins, and so the write of it and its trailer.
    #[inline]
    #[must_use]
    pub const fn start(&self, len: usize) -> At {
        #[expect(clippy::cast_possible_truncation, reason = "less than a slot has")]
        At { offset: self.end.offset - used(len) as u32, ..self.end }
    }

    /// Looks at the end of the slot, which alone decides by far the most frequent outcomes: for a
    /// fraction of the work of [`Self::copy_out`].
    #[inline(always)]
    pub fn glance(&self, memory: &(impl Memory + ?Sized), sealing: Sealing) -> Glance {
        let is_planted = STAMP_IGNORED.is_planted() || CHECK_BEFORE_COPY.is_planted();
        if sealing == Sealing::Checksum || is_planted {
            return Glance::Unclear;
        }
        let At { region, offset: end } = self.end;
        let [last, words @ ..]: [u64; 4] = memory.load_end(region, end - END_LEN);
        let Some(run) = self.stamp.run_in(words[2]) else { return Glance::Absent };
        let trailer = Trailer::from_words(words, self.stamp);
        let is_clear = run < PACKED && trailer.len <= self.capacity;
        if is_clear { Glance::Stamped(trailer, last) } else { Glance::Unclear }
    }

    /// Glances at this slot and those behind it, `count` of a write that was seen whole, sealed by
    /// stamps. `first` is what this slot is to hold, with 0 for length and kind, which may be any;
    /// the others continue its sequence. `visit` gets each message with its copy, up to a slot that
    /// holds something else.
    #[inline(always)]
    pub fn glance_rest(
        &self,
        memory: &(impl Memory + ?Sized),
        first: &Trailer,
        count: u32,
        scratch: &mut [u8],
        mut visit: impl FnMut(&Trailer, &[u8]),
    ) {
        let At { region, offset } = self.end;
        let slots = (offset - self.stride, self.stride, count);
        let (mut slot, mut due) = (*self, first.to_words());
        memory.load_ends(region, slots, |[only, words @ ..]: [u64; 4]| {
            // All but its length and kind is known. A difference above the length makes it huge.
            let len = words[0].wrapping_sub(due[0]);
            let is_due = words[1] & !KIND_MASK == due[1] && words[2] == due[2];
            if !is_due || len > u64::from(slot.capacity) {
                return false;
            }
            let trailer = Trailer::from_words(words, slot.stamp);
            slot.copy_payload(memory, only, trailer.len, scratch);
            slot.end.offset += slot.stride;
            slot.stamp.ticket += 1;
            due[0] = due[0].wrapping_add(SEQUENCE_STEP);
            due[2] = due[2].wrapping_add(SEALED_STEP);
            visit(&trailer, &scratch[..usize::from(trailer.len)]);
            true
        });
    }

    /// Copies a payload of `len` bytes; `last` is the last word of it.
    ///
    /// # Panics
    /// When `scratch` is shorter than the payload in words.
    #[inline(always)]
    pub fn copy_payload(
        &self,
        memory: &(impl Memory + ?Sized),
        last: u64,
        len: u16,
        scratch: &mut [u8],
    ) {
        let padded = padded(len.into());
        match scratch.first_chunk_mut::<8>() {
            Some(only) if padded == 8 => *only = last.to_le_bytes(),
            _ => {
                memory.copy_out(self.end.region, self.start(padded).offset, &mut scratch[..padded]);
            }
        }
    }

    /// The end of the slot, if the last one of its write has arrived, the end of the write. `words`
    /// is the end of the slot as it was loaded first.
    fn load_behind_end(
        &self,
        memory: &(impl Memory + ?Sized),
        [_, words @ ..]: [u64; 4],
    ) -> Result<[u64; 4], SlotError> {
        let At { region, offset: end } = self.end;
        // All but the stamp may be older than it. Then no word that ends a write is found: it says
        // that it is the last, and in a packed write whose.
        let (slots, last) = self.end_of_write(&Trailer::from_words(words, self.stamp))?;
        let is_there = memory.load(region, end - 8 + (slots - 1) * self.stride) == last;
        if !is_there && !RUN_IGNORED.is_planted() {
            return Err(SlotError::Stamp);
        }
        // What was loaded before is as old as the stamp of this slot, not as the end of the write.
        let again = memory.load_end(region, end - END_LEN);
        // Only a member that breaks the protocol writes the stamp again.
        if again[3] == words[2] { Ok(again) } else { Err(SlotError::Stamp) }
    }

    /// Copies the payload from own `memory` to the beginning of `scratch`, each word once, and
    /// checks the copy.
    ///
    /// # Errors
    /// [`SlotError`]; what `scratch` holds then is meaningless.
    ///
    /// # Panics
    /// When `scratch` has no room for a trailer behind `capacity` bytes, rounded up to words: a bug
    /// of the caller.
    pub fn copy_out(
        &self,
        memory: &(impl Memory + ?Sized),
        sealing: Sealing,
        scratch: &mut [u8],
        checksum: impl Fn(&[u8]) -> u32,
    ) -> Result<Trailer, SlotError> {
        let At { region, offset: end } = self.end;
        // The stamp first: what is loaded behind it is at least as new. The trailer, and the word
        // before it, which is all of a short payload.
        let mut words: [u64; 4] = memory.load_end(region, end - END_LEN);
        let run = self.stamp.run_in(words[3]);
        let run = if STAMP_IGNORED.is_planted() { run.or(Some(1)) } else { run };
        let may_pack = if sealing == Sealing::Stamp { PACKED } else { 0 };
        let run = run.filter(|run| run & !may_pack < PACKED).ok_or(SlotError::Stamp)?;
        if sealing == Sealing::Stamp && run > 1 {
            words = self.load_behind_end(memory, words)?;
        }
        let [only, trailer_words @ ..] = words;
        let trailer = Trailer::from_words(trailer_words, self.stamp);
        if trailer.len > self.capacity {
            return Err(SlotError::Length);
        }
        self.copy_payload(memory, only, trailer.len, scratch);
        if sealing == Sealing::Checksum {
            let copy = &mut scratch[..used(trailer.len.into())];
            for (bytes, word) in
                trailer_of(copy).as_chunks_mut::<8>().0.iter_mut().zip(trailer_words)
            {
                *bytes = word.to_le_bytes();
            }
            check(copy, checksum)?;
        }
        if CHECK_BEFORE_COPY.is_planted() {
            let words = memory.load_end(region, end - TRAILER_LEN as u32);
            return Ok(Trailer::from_words(words, self.stamp));
        }
        Ok(trailer)
    }
}

/// Whether the checksum of `copy` holds, which is zero afterwards.
#[inline]
fn check(copy: &mut [u8], checksum: impl Fn(&[u8]) -> u32) -> Result<(), SlotError> {
    let found = &mut trailer_of(copy)[field::CRC..field::KIND];
    let crc = [found[0], found[1], found[2], found[3]];
    found.fill(0);
    let holds = checksum(copy).to_le_bytes() == crc || CHECKSUM_SKIPPED.is_planted();
    holds.then_some(()).ok_or(SlotError::Checksum)
}

impl Trailer {
    /// Writes the trailer to the end of `slot`; no reader accepts it before it is
    /// [sealed](seal_by_stamps).
    ///
    /// # Panics
    /// When `slot` is shorter than a trailer: a bug of the caller.
    #[inline]
    pub fn write(&self, slot: &mut [u8]) {
        for (bytes, word) in trailer_of(slot).as_chunks_mut::<8>().0.iter_mut().zip(self.to_words())
        {
            *bytes = word.to_le_bytes();
        }
    }

    /// The trailer without a checksum.
    #[inline]
    const fn to_words(self) -> [u64; 3] {
        let Self { len, sender, sequence, stamp, kind, incarnation, run } = self;
        let head = len as u64 | (sender as u64) << 16 | (sequence as u64) << 32;
        let middle = (kind as u64) << 32 | (incarnation as u64) << 48;
        [head, middle, stamp.sealed(run)]
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the parts of the words")]
    const fn from_words([head, middle, last]: [u64; 3], stamp: Stamp) -> Self {
        Self {
            len: head as u16,
            sender: (head >> 16) as u16,
            sequence: (head >> 32) as u32,
            stamp,
            kind: (middle >> 32) as u16,
            incarnation: (middle >> 48) as u16,
            run: (last >> RUN_SHIFT) as u16,
        }
    }

    /// Checks a private copy that ends with a slot, sealed by its checksum, and reads the trailer.
    ///
    /// The checksum field of `copy` is zero afterwards.
    ///
    /// # Errors
    /// [`SlotError`], in the order stamp, length, checksum.
    ///
    /// # Panics
    /// When `copy` is shorter than [`TRAILER_LEN`]: a bug of the caller.
    pub fn open(
        copy: &mut [u8],
        expected: Stamp,
        checksum: impl Fn(&[u8]) -> u32,
    ) -> Result<Self, SlotError> {
        let trailer = trailer_of(copy);
        let words = [0, field::CRC, field::STAMP].map(|at| u64_at(trailer, at));
        if expected.run_in(words[2]).is_none() {
            return Err(SlotError::Stamp);
        }
        let trailer = Self::from_words(words, expected);
        let start = copy.len().checked_sub(used(trailer.len.into())).ok_or(SlotError::Length)?;
        check(&mut copy[start..], checksum).map(|()| trailer)
    }
}

#[cfg(test)]
mod tests {
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
}
