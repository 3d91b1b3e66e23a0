//! Packed writes: messages of one length and one kind that share slots.

use core::ops::Range;

use super::{END_LEN, INLINE_MAX, PACKED, PART, SEALED_STEP, Slot, SlotError, Stamp, Trailer};
use super::{padded, seal_by_stamps, used};
use crate::fabric::{At, Memory};

/// Where the payloads of a packed write lie behind the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    stride: u32,
    /// Bytes that a payload takes.
    place: u32,
    /// Payloads in a slot: two at least.
    per_slot: u32,
}

impl Packing {
    /// Of payloads of `len` bytes in slots of `stride` bytes; `None` if packing saves nothing.
    #[inline]
    #[must_use]
    pub const fn new(stride: u32, len: u16) -> Option<Self> {
        let place = if len == 0 { 8 } else { padded(len as usize) as u32 };
        let per_slot = (stride - 8) / place;
        if per_slot < 2 { None } else { Some(Self { stride, place, per_slot }) }
    }

    /// Slots of a write of `count` messages.
    #[inline]
    #[must_use]
    pub const fn slots(self, count: u32) -> u32 {
        1 + (count - 1).div_ceil(self.per_slot)
    }

    /// Where the payload of the message `behind` the first one begins, from the first slot on.
    #[inline]
    #[must_use]
    pub const fn offset(self, behind: u32) -> u32 {
        let (slot, place) = ((behind - 1) / self.per_slot, (behind - 1) % self.per_slot);
        (1 + slot) * self.stride + place * self.place
    }

    /// The places of the payloads from the message `behind` the first one on.
    #[inline]
    #[must_use]
    pub const fn places(self, behind: u32) -> Places {
        let at = self.offset(behind);
        Places { packing: self, at, end: at - at % self.stride + self.stride - 8 }
    }
}

/// Goes from the place of a payload to that of the next.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// How the payloads are packed.
    pub packing: Packing,
    /// Where the next payload begins.
    at: u32,
    /// Where its slot has its stamp.
    end: u32,
}

impl Places {
    /// Where the next payload begins, from the first slot on.
    #[inline(always)]
    pub const fn step(&mut self) -> u32 {
        let (at, Packing { stride, place, .. }) = (self.at, self.packing);
        self.at += place;
        if self.at + place > self.end {
            self.at = self.end + 8;
            self.end += stride;
        }
        at
    }
}

/// What the last word of a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It is of another use, or was not written yet.
    Absent,
    /// The slot holds one message.
    Single,
    /// The slot is the first one of a packed write of so many messages.
    Packed(u32),
    /// The slot is one of a packed write behind the first.
    Part,
}

/// Seals a packed write of `count` messages of `sender`: `slots`, of `stride` bytes each, begin
/// with the first one, whose trailer was [written](Trailer::write).
///
/// # Panics
/// When `slots` has none, or shorter ones than a trailer: a bug of the caller.
#[inline]
pub fn seal_packed(
    slots: &mut [u8],
    stride: usize,
    stamp: Stamp,
    (sender, count, sequence): (u16, u16, u32),
) {
    #[expect(clippy::cast_possible_truncation, reason = "fewer than a half has")]
    let behind = (slots.len() / stride) as u32 - 1;
    let mut slots = slots.chunks_exact_mut(stride);
    seal_by_stamps(slots.by_ref().take(1), stamp, PACKED | count, sequence);
    let next = Stamp { ticket: stamp.ticket + 1, ..stamp };
    let mut sealed = next.sealed_part(behind, sender);
    for slot in slots {
        slot[stride - 8..].copy_from_slice(&sealed.to_le_bytes());
        sealed = sealed.wrapping_add(SEALED_STEP);
    }
}

impl Slot {
    /// What the last word of the slot says, where slots are sealed by stamps.
    #[inline]
    #[must_use]
    pub fn seal(&self, memory: &(impl Memory + ?Sized)) -> Seal {
        match self.stamp.run_in(memory.load(self.end.region, self.end.offset - 8)) {
            None => Seal::Absent,
            Some(run) if run & PART != 0 => Seal::Part,
            Some(run) if run & PACKED != 0 => Seal::Packed((run & !PACKED).into()),
            Some(_) => Seal::Single,
        }
    }

    /// The slots of the write that begins here as `first` says, and its last word.
    pub(super) fn end_of_write(&self, first: &Trailer) -> Result<(u32, u64), SlotError> {
        let count = first.count();
        let packing = Packing::new(self.stride, first.len).filter(|_| first.is_packed());
        if count == 0 || first.is_packed() != packing.is_some() {
            return Err(SlotError::Length);
        }
        let slots = packing.map_or(count, |packing| packing.slots(count));
        // No writer stages more.
        if self.stamp.ticket + count > self.slots || count * self.stride > INLINE_MAX {
            return Err(SlotError::Length);
        }
        let last = Stamp { ticket: self.stamp.ticket + slots - 1, ..self.stamp };
        let sealed = match packing {
            Some(_) => last.sealed_part(1, first.sender),
            None => last.sealed(1),
        };
        Ok((slots, sealed))
    }

    /// Copies to the beginning of `scratch` the payload of the message `behind` the first one of
    /// the packed write that begins in this slot.
    ///
    /// # Errors
    /// [`SlotError`]; what `scratch` holds then is meaningless.
    ///
    /// # Panics
    /// When `scratch` is shorter than a payload in words.
    pub fn copy_packed(
        &self,
        memory: &(impl Memory + ?Sized),
        behind: u32,
        scratch: &mut [u8],
    ) -> Result<Trailer, SlotError> {
        let first = self.first_of_packed(memory)?;
        let (slots, _) = self.end_of_write(&first)?;
        let packing = Packing::new(self.stride, first.len).filter(|_| behind < first.count());
        let offset = packing.ok_or(SlotError::Length)?.offset(behind);
        // From the end of the first slot on.
        let (slot, at) = (offset / self.stride, self.end.offset + offset - self.stride);
        let stamp = Stamp { ticket: self.stamp.ticket + slot, ..self.stamp };
        let sealed = stamp.sealed_part(slots - slot, first.sender);
        if memory.load(self.end.region, self.end.offset + slot * self.stride - 8) != sealed {
            return Err(SlotError::Stamp);
        }
        memory.copy_out(self.end.region, at, &mut scratch[..padded(first.len.into())]);
        let stamp = Stamp { ticket: self.stamp.ticket + behind, ..self.stamp };
        let sequence = first.sequence.wrapping_add(behind);
        #[expect(clippy::cast_possible_truncation, reason = "a run has no more")]
        Ok(Trailer { sequence, stamp, run: (first.count() - behind) as u16, ..first })
    }

    /// The trailer of the first message of the packed write that begins in this slot, if all of it
    /// has arrived.
    ///
    /// # Errors
    /// [`SlotError`].
    pub fn first_of_packed(&self, memory: &(impl Memory + ?Sized)) -> Result<Trailer, SlotError> {
        let At { region, offset: end } = self.end;
        let words: [u64; 4] = memory.load_end(region, end - END_LEN);
        let run = self.stamp.run_in(words[3]).filter(|run| run & (PACKED | PART) == PACKED);
        run.ok_or(SlotError::Stamp)?;
        let [_, words @ ..] = self.load_behind_end(memory, words)?;
        let first = Trailer::from_words(words, self.stamp);
        if first.len > self.capacity { Err(SlotError::Length) } else { Ok(first) }
    }

    /// Visits messages of the packed write that begins in this slot with [`first`], each with its
    /// copy, up to a slot that holds something else: those that are `behind` the first one, from
    /// itself, 0, on.
    ///
    /// [`first`]: Self::first_of_packed
    ///
    /// # Panics
    /// When `scratch` is shorter than an inline write, or `behind` longer than the write.
    #[inline(always)]
    pub fn glance_packed(
        &self,
        memory: &(impl Memory + ?Sized),
        first: &Trailer,
        behind: Range<u32>,
        scratch: &mut [u8],
        mut visit: impl FnMut(&Trailer, &[u8]),
    ) {
        let (stride, len) = (self.stride, usize::from(first.len));
        let Some(packing) = Packing::new(stride, first.len) else { return };
        if behind.is_empty() {
            return;
        }
        let [begin, last] = [behind.start, behind.end - 1].map(|behind| match behind {
            0 => stride - used(len) as u32,
            _ => packing.offset(behind),
        });
        let (slot, from) = (begin / stride, begin % stride);
        let copy = &mut scratch[..((last / stride + 1 - slot) * stride) as usize];
        let at = self.end.offset + begin - stride;
        memory.copy_out(self.end.region, at, &mut copy[from as usize..]);
        let mut message = Trailer {
            sequence: first.sequence.wrapping_add(behind.start),
            stamp: Stamp { ticket: self.stamp.ticket + behind.start, ..self.stamp },
            ..*first
        };
        let stamp = Stamp { ticket: self.stamp.ticket + slot, ..self.stamp };
        let mut sealed = stamp.sealed_part(packing.slots(first.count()) - slot, first.sender);
        let (mut left, place) = (behind.end - behind.start, packing.place as usize);
        let (mut from, mut end) = (from as usize, stride as usize - 8);
        let mut next = sealed.wrapping_add(SEALED_STEP);
        if slot == 0 {
            // It holds one message, and its trailer.
            (sealed, end) = (self.stamp.sealed(first.run), from + place);
        }
        for bytes in copy.chunks_exact(stride as usize) {
            if bytes[stride as usize - 8..] != sealed.to_le_bytes() {
                return;
            }
            let mut payloads = &bytes[from..end];
            while left > 0
                && let Some((payload, behind)) = payloads.split_at_checked(place)
            {
                visit(&message, &payload[..len]);
                message.sequence = message.sequence.wrapping_add(1);
                message.stamp.ticket += 1;
                (left, payloads) = (left - 1, behind);
            }
            (from, end) = (0, stride as usize - 8);
            (sealed, next) = (next, next.wrapping_add(SEALED_STEP));
        }
    }
}
