//! What is staged for one owner: messages, as one write will carry them.
//!
//! Each is staged in a slot of its own; or packed, as long as all have the length and the kind of
//! the first one (MB-8).

use core::fmt;

use super::super::Config;
use crate::fabric::INLINE_LEN;
use crate::ids::Peer;
use crate::wire::slot::{
    Packing, Places, Sealing, Stamp, TRAILER_LEN, Trailer, checksum, form_of, seal_by_stamps,
    seal_packed, used,
};

/// Why a message was not staged. The outbox is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StageError {
    /// A flush is under way; wait for its [`PutEvent`](super::PutEvent).
    Busy,
    /// The batch is full: flush first.
    BatchFull {
        /// How many messages a batch holds.
        limit: u32,
    },
    /// The message is longer than the configured slot.
    TooLong {
        /// How many bytes a slot holds.
        limit: u16,
    },
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("a put to this owner is under way: poll until its event"),
            Self::BatchFull { limit } => {
                write!(f, "the batch is full with {limit} messages: flush it first")
            }
            Self::TooLong { limit } => {
                write!(f, "the message is longer than the {limit} bytes of a slot: split it")
            }
        }
    }
}

impl core::error::Error for StageError {}

/// The packed messages that are staged.
#[derive(Clone, Copy, Debug)]
struct Packed {
    /// Length and kind of each.
    form: (u16, u16),
    /// Where the next payloads go.
    places: Places,
    /// How many messages may be staged without a closer look; zero after [`Stage::close`].
    limit: u32,
}

impl Packed {
    /// `count` messages of one `form`, in slots of `stride` bytes; `None` if packing saves nothing.
    fn new(stride: u32, form: (u16, u16), count: u32) -> Option<Self> {
        let packing = Packing::new(stride, form.0)?;
        Some(Self { form, places: packing.places(count), limit: 0 })
    }

    const fn packing(&self) -> Packing {
        self.places.packing
    }
}

/// The staged messages.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Bytes of a slot.
    stride: u32,
    message_len: u16,
    /// How many messages one write can carry.
    batch: u32,
    /// Who sends, and the low half of its incarnation.
    from: (Peer, u16),
    /// Writes may be packed: slots are sealed by their stamps.
    packs: bool,
    count: u32,
    /// Where more than one message is staged: they are packed.
    packed: Option<Packed>,
    bytes: [u8; INLINE_LEN],
}

impl core::hash::Hash for Stage {
    /// Of the buffer, only what is staged. What lies in front of a payload in its slot is written
    /// to no slot but between those of a batch, and is read by no owner.
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let packed = self.packed();
        (self.from, self.count, packed.map(|it| it.form)).hash(state);
        let slots = if packed.is_some() { 1 } else { self.count };
        self.bytes[..(slots * self.stride) as usize].hash(state);
        self.payloads().skip(slots as usize).for_each(|payload| payload.hash(state));
    }
}

impl Stage {
    /// For messages of one sender, whose slots are sealed so.
    pub(super) const fn new(config: &Config, from: (Peer, u16), sealing: Sealing) -> Self {
        Self {
            stride: config.stride(),
            message_len: config.message_len(),
            batch: config.batch(),
            from,
            packs: matches!(sealing, Sealing::Stamp),
            count: 0,
            packed: None,
            bytes: [0; INLINE_LEN],
        }
    }

    /// How many messages.
    #[inline(always)]
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The payloads, in order.
    pub(super) fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let packed = self.packed();
        (0..self.count).map(move |index| {
            let at = packed.filter(|_| index > 0).map(|it| (it.packing().offset(index), it.form.0));
            let (at, len) = at.unwrap_or_else(|| self.in_slot(index));
            &self.bytes[at as usize..][..usize::from(len)]
        })
    }

    /// Where the payload in the slot `index` begins, and its length.
    fn in_slot(&self, index: u32) -> (u32, u16) {
        let end = (index + 1) * self.stride;
        let (len, _) = form_of(&self.bytes[(end - self.stride) as usize..end as usize]);
        (end - used(len.into()) as u32, len)
    }

    /// How the messages are packed, if they are.
    const fn packed(&self) -> Option<Packed> {
        if self.count > 1 { self.packed } else { None }
    }

    /// Adds a message if that is packed and needs no closer look, which [`Self::add`] takes;
    /// whether it did.
    #[inline(always)]
    pub(super) fn add_packed(&mut self, kind: u16, payload: &[u8]) -> bool {
        let (form, count) = ((payload.len(), kind), self.count);
        let is_due = |it: &&mut Packed| count < it.limit && (it.form.0.into(), it.form.1) == form;
        let Some(packed) = self.packed.as_mut().filter(is_due) else { return false };
        let at = packed.places.step() as usize;
        copy_padded(payload, &mut self.bytes, at);
        self.count += 1;
        true
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`StageError`]. Whether a flush is under way is known to the caller.
    #[inline(always)]
    pub(super) fn add(&mut self, kind: u16, payload: &[u8]) -> Result<(), StageError> {
        let limit = self.message_len;
        if payload.len() > usize::from(limit) {
            return Err(StageError::TooLong { limit });
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        let len = payload.len() as u16;
        let end = ((self.count + 1) * self.stride) as usize;
        if end > INLINE_LEN {
            return Err(StageError::BatchFull { limit: self.batch });
        }
        let may_pack = self.packs && (self.count == 1 || self.packed().is_some());
        if may_pack && self.pack((len, kind)) && self.add_packed(kind, payload) {
            return Ok(());
        }
        let slot = &mut self.bytes[end - used(payload.len())..end];
        copy_padded(payload, slot, 0);
        let (Peer(sender), incarnation) = self.from;
        Trailer { len, sender, kind, incarnation, ..Trailer::default() }.write(slot);
        self.count += 1;
        Ok(())
    }

    /// Makes room for a message of `form` behind the others, one at least, if all of them can be
    /// packed; else gives each a slot of its own. Whether it made room.
    #[inline(never)]
    fn pack(&mut self, form: (u16, u16)) -> bool {
        if self.count == 1 {
            let first = form_of(&self.bytes[..self.stride as usize]);
            self.packed = Packed::new(self.stride, first, 1);
        }
        if let Some(packed) = self.packed.as_mut().filter(|packed| packed.form == form) {
            packed.limit = self.batch;
            return true;
        }
        self.unpack();
        false
    }

    /// Gives each message a slot of its own.
    fn unpack(&mut self) {
        let Some(packed) = self.packed.take() else { return };
        let (packing, (len, kind)) = (packed.packing(), packed.form);
        let (Peer(sender), incarnation) = self.from;
        // The last first: a slot lies behind all the places of the messages before.
        for index in (1..self.count).rev() {
            let (from, end) =
                (packing.offset(index) as usize, ((index + 1) * self.stride) as usize);
            let to = end - used(len.into());
            self.bytes.copy_within(from..from + end - TRAILER_LEN - to, to);
            let trailer = Trailer { len, sender, kind, incarnation, ..Trailer::default() };
            trailer.write(&mut self.bytes[to..end]);
        }
    }

    /// A flush begins: nothing is added before [`Self::add`] has looked.
    #[inline(always)]
    pub(super) const fn close(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.limit = 0;
        }
    }

    /// Forgets all messages.
    pub(super) const fn clear(&mut self) {
        (self.count, self.packed) = (0, None);
    }

    /// Seals the slots of the first `count` messages by their stamps, from `first` on.
    #[inline(always)]
    pub(super) fn seal(&mut self, first: Stamp, count: u32, sequence: u32) {
        let (len, is_packed) = self.extent(count);
        let (slots, stride) = (&mut self.bytes[..len], self.stride as usize);
        #[expect(clippy::cast_possible_truncation, reason = "a batch is shorter")]
        let run = count as u16;
        if is_packed {
            seal_packed(slots, stride, first, (self.from.0.0, run, sequence));
        } else {
            seal_by_stamps(slots.chunks_exact_mut(stride), first, run, sequence);
        }
    }

    /// Adds their checksums to the sealed slots of the first `count` messages, which are not
    /// packed.
    pub(super) fn add_checksums(&mut self, count: u32, crc32c: impl Fn(&[u8]) -> u32) {
        let (len, _) = self.extent(count);
        let slots = self.bytes[..len].chunks_exact_mut(self.stride as usize);
        slots.for_each(|slot| checksum(slot, &crc32c));
    }

    /// The bytes to write for the first `count` messages, and the length of the first one. What the
    /// first slot does not use is left out; the last word is the stamp of the last slot.
    #[inline(always)]
    pub(super) fn slots(&self, count: u32) -> (usize, &[u8]) {
        let stride = self.stride as usize;
        let len = form_of(&self.bytes[..stride]).0.into();
        (len, &self.bytes[stride - used(len)..self.extent(count).0])
    }

    /// Bytes of the slots of the first `count` messages, and whether these are packed.
    #[inline(always)]
    fn extent(&self, count: u32) -> (usize, bool) {
        let packed = self.packed.filter(|_| count > 1);
        let slots = packed.map_or(count, |packed| packed.packing().slots(count));
        ((slots * self.stride) as usize, packed.is_some())
    }

    /// Removes the first `count` messages, which were put.
    #[inline(always)]
    pub(super) fn remove(&mut self, count: u32) {
        if count < self.count {
            self.move_up(count);
        }
        self.count -= count;
    }

    /// Moves the messages from `count` on to the front.
    #[inline(never)]
    fn move_up(&mut self, count: u32) {
        let stride = self.stride as usize;
        let Some(packed) = self.packed() else {
            let (from, end) = (count as usize * stride, self.count as usize * stride);
            return self.bytes.copy_within(from..end, 0);
        };
        let (packing, form) = (packed.packing(), packed.form);
        let first = stride - used(form.0.into());
        for index in count..self.count {
            let from = packing.offset(index) as usize;
            let to = if index == count { first } else { packing.offset(index - count) as usize };
            self.bytes.copy_within(from..from + stride - TRAILER_LEN - first, to);
        }
        self.packed = Packed::new(self.stride, form, self.count - count);
    }
}

/// Copies `payload` to `bytes` from `at` on, padded with zeros to a multiple of 8 bytes.
#[inline(always)]
fn copy_padded(payload: &[u8], bytes: &mut [u8], at: usize) {
    if let Ok(word) = <[u8; 8]>::try_from(payload) {
        // A call costs more than the copy of a word.
        if let Some(place) = bytes[at..at + 8].first_chunk_mut() {
            *place = word;
        }
    } else {
        // The padding, before the payload covers the rest of its word.
        let place = &mut bytes[at..];
        let padded = payload.len().next_multiple_of(8);
        if let Some(last) = place[..padded].last_chunk_mut::<8>() {
            *last = [0; 8];
        }
        place[..payload.len()].copy_from_slice(payload);
    }
}
