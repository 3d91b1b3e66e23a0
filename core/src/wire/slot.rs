//! The slot of a mailbox or a lane: a header of 24 bytes and the payload (MB-4).
//!
//! ```text
//! byte  0      2        4          8       12       16       20     22            24
//!       │ len  │ sender │ sequence │ epoch │ ticket │ crc32c │ kind │ incarnation │ payload …
//! ```
//!
//! `len` counts payload bytes. The checksum runs over header and payload with the checksum field
//! itself as zero. `incarnation` is the low half of the sender's. `epoch` and `ticket` are the
//! slot's stamp, so that bytes of an earlier use are not accepted.

use core::fmt;

use super::mutants::{CHECK_BEFORE_COPY, CHECKSUM_SKIPPED, STAMP_IGNORED};
use super::{u16_at, u32_at};
use crate::fabric::{At, Fabric, Memory};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 24;

/// Byte offset of the word that holds `epoch` (low half) and `ticket` (high half).
pub const STAMP_OFFSET: u32 = 8;

mod field {
    pub(super) const LEN: usize = 0;
    pub(super) const SENDER: usize = 2;
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const EPOCH: usize = 8;
    pub(super) const TICKET: usize = 12;
    pub(super) const CRC: usize = 16;
    pub(super) const KIND: usize = 20;
    pub(super) const INCARNATION: usize = 22;
}

/// One use of one slot: the identity that a reader expects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// The pass over the slots.
    pub epoch: u32,
    /// The slot of the pass.
    pub ticket: u32,
}

impl Stamp {
    /// The stamp as the word at [`STAMP_OFFSET`].
    #[must_use]
    pub const fn to_word(self) -> u64 {
        self.epoch as u64 | (self.ticket as u64) << 32
    }

    /// The stamp that [`Self::to_word`] made `word` from.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
        Self { epoch: word as u32, ticket: (word >> 32) as u32 }
    }
}

/// The header, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
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
}

/// Why a copy of a slot holds no message. Nothing was read past `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotError {
    /// The slot carries the stamp of another use, or none yet.
    Stamp,
    /// The length does not fit into the slot.
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

/// Seals a slot whose header was [written](Header::write) and whose payload lies behind it:
/// sets stamp and sequence and computes the checksum over all of it.
///
/// # Panics
/// When `slot` is shorter than its header and payload: a bug of the caller.
#[inline]
pub fn seal(slot: &mut [u8], stamp: Stamp, sequence: u32, checksum: impl Fn(&[u8]) -> u32) {
    let len = usize::from(u16_at(slot, field::LEN));
    let used = &mut slot[..HEADER_LEN + len];
    used[field::SEQUENCE..field::SEQUENCE + 4].copy_from_slice(&sequence.to_le_bytes());
    used[field::EPOCH..field::EPOCH + 8].copy_from_slice(&stamp.to_word().to_le_bytes());
    used[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
    let crc = checksum(used);
    used[field::CRC..field::CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Copies the slot at `at` of own memory into `scratch`, once, and checks the copy.
///
/// # Errors
/// [`SlotError`]; what `scratch` holds then is meaningless.
///
/// # Panics
/// When `scratch` is shorter than a header and `capacity` bytes: a bug of the caller.
#[inline]
pub fn copy_out(
    fabric: &impl Fabric,
    at: At,
    expected: Stamp,
    capacity: usize,
    scratch: &mut [u8],
) -> Result<Header, SlotError> {
    let memory = fabric.memory();
    let (head, body) = scratch.split_at_mut(HEADER_LEN);
    memory.copy_out(at.region, at.offset, head);
    let len = Header::peek_len(head, expected, capacity)?;
    memory.copy_out(at.region, at.offset + HEADER_LEN as u32, &mut body[..len]);
    let checksum = |bytes: &[u8]| fabric.crc32c(bytes);
    let header = Header::open(&mut scratch[..HEADER_LEN + len], expected, checksum)?;
    if CHECK_BEFORE_COPY.is_planted() {
        memory.copy_out(at.region, at.offset, &mut scratch[..HEADER_LEN + len]);
        return Ok(Header { len: u16_at(scratch, field::LEN), ..header });
    }
    Ok(header)
}

impl Header {
    /// Writes the header into the first [`HEADER_LEN`] bytes of `slot`; no reader accepts it
    /// before [`seal`] has computed the checksum.
    ///
    /// # Panics
    /// When `slot` is shorter than the header: a bug of the caller.
    #[inline]
    pub fn write(&self, slot: &mut [u8]) {
        let slot = &mut slot[..HEADER_LEN];
        slot[field::LEN..field::LEN + 2].copy_from_slice(&self.len.to_le_bytes());
        slot[field::SENDER..field::SENDER + 2].copy_from_slice(&self.sender.to_le_bytes());
        slot[field::SEQUENCE..field::SEQUENCE + 4].copy_from_slice(&self.sequence.to_le_bytes());
        slot[field::EPOCH..field::EPOCH + 8].copy_from_slice(&self.stamp.to_word().to_le_bytes());
        slot[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
        slot[field::KIND..field::KIND + 2].copy_from_slice(&self.kind.to_le_bytes());
        let incarnation = self.incarnation.to_le_bytes();
        slot[field::INCARNATION..field::INCARNATION + 2].copy_from_slice(&incarnation);
    }

    /// The payload length that the head of a private copy claims, when it can fit.
    ///
    /// # Errors
    /// [`SlotError::Stamp`] and [`SlotError::Length`].
    ///
    /// # Panics
    /// When `head` is shorter than [`HEADER_LEN`]: a bug of the caller.
    #[inline]
    pub fn peek_len(head: &[u8], expected: Stamp, capacity: usize) -> Result<usize, SlotError> {
        let stamp =
            Stamp { epoch: u32_at(head, field::EPOCH), ticket: u32_at(head, field::TICKET) };
        if stamp != expected && !STAMP_IGNORED.is_planted() {
            return Err(SlotError::Stamp);
        }
        let len = usize::from(u16_at(head, field::LEN));
        if len > capacity { Err(SlotError::Length) } else { Ok(len) }
    }

    /// Checks a private copy of header and payload, and reads the header.
    ///
    /// The checksum field of `copy` is zero afterwards.
    ///
    /// # Errors
    /// [`SlotError`], in the order stamp, length, checksum.
    ///
    /// # Panics
    /// When `copy` is shorter than [`HEADER_LEN`]: a bug of the caller.
    #[inline]
    pub fn open(
        copy: &mut [u8],
        expected: Stamp,
        checksum: impl Fn(&[u8]) -> u32,
    ) -> Result<Self, SlotError> {
        let len = Self::peek_len(copy, expected, copy.len() - HEADER_LEN)?;
        let used = &mut copy[..HEADER_LEN + len];
        let crc = u32_at(used, field::CRC);
        used[field::CRC..field::CRC + 4].copy_from_slice(&[0; 4]);
        if checksum(used) != crc && !CHECKSUM_SKIPPED.is_planted() {
            return Err(SlotError::Checksum);
        }
        Ok(Self {
            len: u16_at(used, field::LEN),
            sender: u16_at(used, field::SENDER),
            sequence: u32_at(used, field::SEQUENCE),
            stamp: expected,
            kind: u16_at(used, field::KIND),
            incarnation: u16_at(used, field::INCARNATION),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::crc32c;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn header() -> impl Strategy<Value = Header> {
        (any::<[u16; 3]>(), any::<[u32; 3]>()).prop_map(|(short, long)| Header {
            len: 0,
            sender: short[0],
            sequence: long[0],
            stamp: Stamp { epoch: long[1], ticket: long[2] },
            kind: short[1],
            incarnation: short[2],
        })
    }

    fn sealed(header: Header, payload: &[u8]) -> (Header, Vec<u8>) {
        let header = Header { len: u16::try_from(payload.len()).unwrap(), ..header };
        let mut slot = vec![0; HEADER_LEN];
        slot.extend_from_slice(payload);
        header.write(&mut slot);
        seal(&mut slot, header.stamp, header.sequence, crc32c);
        (header, slot)
    }

    proptest! {
        #[test]
        fn a_sealed_slot_opens_to_what_was_sealed(
            header in header(), payload in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let (header, mut slot) = sealed(header, &payload);
            prop_assert_eq!(Header::open(&mut slot, header.stamp, crc32c), Ok(header));
            prop_assert_eq!(&slot[HEADER_LEN..], &payload);
        }

        #[test]
        fn any_flipped_byte_is_refused(
            header in header(), payload in proptest::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(), flip in 1u8..,
        ) {
            let (header, mut slot) = sealed(header, &payload);
            let at = at.index(slot.len());
            slot[at] ^= flip;
            prop_assert!(Header::open(&mut slot, header.stamp, crc32c).is_err());
        }

        #[test]
        fn garbage_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 24..80)) {
            let stamp = Stamp { epoch: u32_at(&bytes, 8), ticket: u32_at(&bytes, 12) };
            let _ = Header::open(&mut bytes, stamp, crc32c);
        }
    }

    #[test]
    fn a_truncated_slot_is_refused_at_every_length() {
        let (header, slot) = sealed(Header::default(), b"payload");
        for len in HEADER_LEN..slot.len() {
            let result = Header::open(&mut slot[..len].to_vec(), header.stamp, crc32c);
            assert_eq!(result, Err(SlotError::Length), "cut to {len}");
        }
    }

    #[test]
    fn another_use_of_the_slot_is_distinguished_from_damage() {
        let (header, mut slot) = sealed(Header::default(), b"payload");
        let next = Stamp { epoch: header.stamp.epoch + 2, ..header.stamp };
        assert_eq!(Header::open(&mut slot, next, crc32c), Err(SlotError::Stamp));
    }

    #[test]
    fn a_zeroed_slot_is_no_message() {
        let result = Header::open(&mut [0; 64], Stamp::default(), crc32c);
        assert_eq!(result, Err(SlotError::Checksum));
    }
}
