//! What the measured messages hold: their number, so that a lost, doubled or foreign one is found.
//!
//! ```text
//!   byte 0        8                    len - 8      len
//!        │ number │ filling …          │ !number    │       8 bytes: the number alone
//! ```
//!
//! Number and complement stand at both ends; what lies between is checked by the mailbox's own
//! checksum. So the check costs the same few instructions at every length.

use weft_core::ids::Peer;

use super::error::BenchError;

/// A message that goes back and forth.
pub(super) const PING: u16 = 1;
/// A message that goes one way.
pub(super) const DATA: u16 = 2;
/// The last message of a phase.
pub(super) const END: u16 = 3;

/// Writes message `number` into `payload`, of 8 bytes or at least 16.
#[inline]
pub(super) fn write(payload: &mut [u8], number: u64) {
    if let Some(last) = payload.last_chunk_mut::<8>() {
        *last = (!number).to_le_bytes();
    }
    if let Some(first) = payload.first_chunk_mut::<8>() {
        *first = number.to_le_bytes();
    }
}

/// What the first 8 bytes of a block of a long message hold: the number of the message, and where
/// in it the block begins.
pub(super) const fn mark(seq: u64, offset: u64) -> [u8; 8] {
    (seq << 40 ^ offset).to_le_bytes()
}

/// The number of a message that was [written](write) with `len` bytes.
#[inline]
pub(super) fn read(payload: &[u8], len: usize) -> Option<u64> {
    if payload.len() != len {
        return None;
    }
    let number = u64::from_le_bytes(*payload.first_chunk()?);
    if len == 8 {
        return Some(number);
    }
    let last = u64::from_le_bytes(*payload.last_chunk()?);
    (last == !number).then_some(number)
}

/// Whether `payload` is message `number` of `len` bytes.
#[inline(always)]
pub(super) fn holds(payload: &[u8], len: usize, number: u64) -> bool {
    payload.len() == len
        && payload.first_chunk() == Some(&number.to_le_bytes())
        && (len == 8 || payload.last_chunk() == Some(&(!number).to_le_bytes()))
}

/// Refuses a message of `writer` that is not number `expected`.
#[inline]
pub(super) fn expect(
    writer: Peer,
    payload: &[u8],
    len: usize,
    expected: u64,
) -> Result<(), BenchError> {
    if holds(payload, len, expected) {
        Ok(())
    } else {
        Err(BenchError::WrongMessage { writer, expected, found: read(payload, len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_comes_back_and_a_damaged_one_does_not() {
        for len in [8, 16, 64] {
            let mut payload = vec![0; len];
            write(&mut payload, 77);
            assert_eq!(read(&payload, len), Some(77));
            assert_eq!(read(&payload[..len - 1], len), None);
            assert!(holds(&payload, len, 77) && !holds(&payload, len, 78));
            assert!(!holds(&payload[..len - 1], len, 77));
        }
        let mut payload = vec![0; 64];
        write(&mut payload, 77);
        payload[63] ^= 1;
        assert!(matches!(
            expect(Peer(2), &payload, 64, 77),
            Err(BenchError::WrongMessage { writer: Peer(2), expected: 77, found: None })
        ));
    }
}
