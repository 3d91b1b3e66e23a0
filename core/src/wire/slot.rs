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
mod tests;
