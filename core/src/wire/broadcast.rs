//! The slot of a non-equivocating broadcast: a header of 32 bytes, the payload, and in the
//! signed form a signature of 64 bytes.
//!
//! ```text
//! byte  0     8            12       14    16    24       28     32
//!       │ seq │ generation │ origin │ len │ tag │ crc32c │ form │ payload … │ signature │
//! ```
//!
//! `len` counts payload bytes; `tag` is the application's and never a slot number. The checksum
//! runs over header, payload and signature with the checksum field itself as zero. `seq` is the
//! first word, so that a member that exposes a slot can store it last: a slot whose first word is
//! zero holds no message yet.

use core::fmt;

use super::{u16_at, u32_at};
use crate::ids::Peer;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 32;

/// Length of a signature in bytes (Ed25519, RFC 8032).
pub const SIGNATURE_LEN: usize = 64;

mod field {
    pub(super) const SEQ: usize = 0;
    pub(super) const GENERATION: usize = 8;
    pub(super) const ORIGIN: usize = 12;
    pub(super) const LEN: usize = 14;
    pub(super) const TAG: usize = 16;
    pub(super) const CRC: usize = 24;
    pub(super) const FORM: usize = 28;
}

/// Whether slots carry a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Header and payload.
    #[default]
    Unsigned,
    /// Header, payload and the origin's signature.
    Signed,
}

impl Form {
    /// Bytes after the payload.
    #[must_use]
    pub const fn trailer_len(self) -> usize {
        match self {
            Self::Unsigned => 0,
            Self::Signed => SIGNATURE_LEN,
        }
    }

    const fn to_word(self) -> u32 {
        match self {
            Self::Unsigned => 0,
            Self::Signed => 1,
        }
    }

    const fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => Some(Self::Unsigned),
            1 => Some(Self::Signed),
            _ => None,
        }
    }
}

/// One use of one slot of an origin's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Counts the origin's messages from 1.
    pub seq: u64,
    /// The pass over the ring, modulo 2^32.
    pub generation: u32,
    /// The origin.
    pub origin: Peer,
}

/// The header, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// The use of the slot.
    pub stamp: Stamp,
    /// Payload bytes.
    pub len: u16,
    /// The application's tag.
    pub tag: u64,
    /// What follows the payload.
    pub form: Form,
}

/// Why a copy of a slot holds no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotError {
    /// There is no such form.
    Form,
    /// The slot claims more bytes than the copy has.
    Length,
    /// The checksum is wrong: torn, still arriving, or garbage.
    Checksum,
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "the slot has a form that does not exist",
            Self::Length => "the slot claims more bytes than were copied",
            Self::Checksum => "the checksum does not hold",
        })
    }
}

impl core::error::Error for SlotError {}

impl Header {
    /// Bytes of the whole slot: header, payload, signature.
    #[must_use]
    pub const fn used(&self) -> usize {
        HEADER_LEN + self.len as usize + self.form.trailer_len()
    }

    /// The payload's place in the slot.
    #[must_use]
    pub const fn payload(&self) -> core::ops::Range<usize> {
        HEADER_LEN..HEADER_LEN + self.len as usize
    }

    /// Writes the header into the first [`HEADER_LEN`] bytes of `slot`; no reader accepts it
    /// before [`seal`] has computed the checksum.
    ///
    /// # Panics
    /// When `slot` is shorter than the header: a bug of the caller.
    pub fn write(&self, slot: &mut [u8]) {
        let slot = &mut slot[..HEADER_LEN];
        slot[field::SEQ..field::SEQ + 8].copy_from_slice(&self.stamp.seq.to_le_bytes());
        let generation = self.stamp.generation.to_le_bytes();
        slot[field::GENERATION..field::GENERATION + 4].copy_from_slice(&generation);
        slot[field::ORIGIN..field::ORIGIN + 2].copy_from_slice(&self.stamp.origin.0.to_le_bytes());
        slot[field::LEN..field::LEN + 2].copy_from_slice(&self.len.to_le_bytes());
        slot[field::TAG..field::TAG + 8].copy_from_slice(&self.tag.to_le_bytes());
        slot[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
        slot[field::FORM..field::FORM + 4].copy_from_slice(&self.form.to_word().to_le_bytes());
    }

    /// The header of a private copy, not verified yet.
    ///
    /// # Errors
    /// [`SlotError::Form`].
    ///
    /// # Panics
    /// When `copy` is shorter than [`HEADER_LEN`]: a bug of the caller.
    pub fn peek(copy: &[u8]) -> Result<Self, SlotError> {
        let form = Form::from_word(u32_at(copy, field::FORM)).ok_or(SlotError::Form)?;
        Ok(Self {
            stamp: Stamp {
                seq: seq_of(copy),
                generation: u32_at(copy, field::GENERATION),
                origin: Peer(u16_at(copy, field::ORIGIN)),
            },
            len: u16_at(copy, field::LEN),
            tag: u64_at(copy, field::TAG),
            form,
        })
    }

    /// Checks a private copy of a slot, and reads the header. Leaves the copy unchanged.
    ///
    /// # Errors
    /// [`SlotError`], in the order form, length, checksum.
    ///
    /// # Panics
    /// When `copy` is shorter than [`HEADER_LEN`]: a bug of the caller.
    pub fn open(copy: &mut [u8], checksum: impl Fn(&[u8]) -> u32) -> Result<Self, SlotError> {
        let header = Self::peek(copy)?;
        let used = copy.get_mut(..header.used()).ok_or(SlotError::Length)?;
        let claimed = u32_at(used, field::CRC);
        used[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
        let computed = checksum(used);
        used[field::CRC..field::CRC + 4].copy_from_slice(&claimed.to_le_bytes());
        if claimed == computed { Ok(header) } else { Err(SlotError::Checksum) }
    }
}

/// The first word of a copy: the number of the message, zero when there is none yet.
///
/// # Panics
/// When `copy` is shorter than 8 bytes: a bug of the caller.
#[must_use]
pub fn seq_of(copy: &[u8]) -> u64 {
    u64_at(copy, field::SEQ)
}

/// Seals a slot whose header was [written](Header::write) and whose payload and signature lie
/// behind it: computes the checksum over `slot`.
///
/// # Panics
/// When `slot` is shorter than the header: a bug of the caller.
pub fn seal(slot: &mut [u8], checksum: impl Fn(&[u8]) -> u32) {
    slot[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
    let crc = checksum(slot);
    slot[field::CRC..field::CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from(u32_at(bytes, offset)) | u64::from(u32_at(bytes, offset + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::crc32c;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn header() -> impl Strategy<Value = (Header, Vec<u8>)> {
        let numbers = (any::<u64>(), any::<u32>(), any::<u16>(), any::<u64>(), any::<bool>());
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        (numbers, bytes).prop_map(|((seq, generation, origin, tag, signed), payload)| {
            let form = if signed { Form::Signed } else { Form::Unsigned };
            let stamp = Stamp { seq, generation, origin: Peer(origin) };
            (Header { stamp, len: payload.len() as u16, tag, form }, payload)
        })
    }

    fn sealed(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut slot = std::vec![0xA5; header.used()];
        header.write(&mut slot);
        slot[header.payload()].copy_from_slice(payload);
        seal(&mut slot, crc32c);
        slot
    }

    proptest! {
        #[test]
        fn a_slot_round_trips((header, payload) in header()) {
            let mut slot = sealed(&header, &payload);
            let before = slot.clone();
            prop_assert_eq!(Header::open(&mut slot, crc32c), Ok(header));
            prop_assert_eq!(&slot[header.payload()], &payload);
            prop_assert_eq!(seq_of(&slot), header.stamp.seq);
            prop_assert_eq!(slot, before);
        }

        #[test]
        fn any_flipped_byte_is_refused(
            (header, payload) in header(), at in any::<prop::sample::Index>(), flip in 1u8..,
        ) {
            let mut slot = sealed(&header, &payload);
            let at = at.index(slot.len());
            slot[at] ^= flip;
            prop_assert!(Header::open(&mut slot, crc32c).is_err());
        }

        #[test]
        fn a_torn_slot_is_one_of_the_two_or_refused(
            (old, first) in header(), (new, second) in header(), arrived in any::<u128>(),
        ) {
            let (mut before, mut after) = (sealed(&old, &first), sealed(&new, &second));
            let len = before.len().max(after.len());
            before.resize(len, 0);
            after.resize(len, 0);
            let is_new = |at: usize| arrived >> (at % 128) & 1 == 1;
            let mut mixed: Vec<u8> =
                (0..len).map(|at| if is_new(at) { after[at] } else { before[at] }).collect();
            let seen = Header::open(&mut mixed, crc32c);
            prop_assert!(seen.is_err() || seen == Ok(old) || seen == Ok(new));
        }

        #[test]
        fn garbage_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 32..200)) {
            let _ = Header::open(&mut bytes, crc32c);
        }
    }

    #[test]
    fn a_truncated_slot_is_refused_at_every_length() {
        let header = Header { len: 7, form: Form::Signed, ..Header::default() };
        let slot = sealed(&header, b"payload");
        for len in HEADER_LEN..slot.len() {
            let result = Header::open(&mut slot[..len].to_vec(), crc32c);
            assert_eq!(result, Err(SlotError::Length), "cut to {len}");
        }
    }

    #[test]
    fn a_zeroed_slot_is_no_message() {
        assert_eq!(Header::open(&mut [0; 64], crc32c), Err(SlotError::Checksum));
        assert_eq!(seq_of(&[0; 64]), 0);
    }

    #[test]
    fn a_form_that_does_not_exist_is_refused() {
        let mut slot = sealed(&Header::default(), b"");
        slot[field::FORM] = 2;
        assert_eq!(Header::open(&mut slot, crc32c), Err(SlotError::Form));
    }
}
