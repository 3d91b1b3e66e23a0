//! Byte layouts: encode, decode, nothing else.
//!
//! Everything that a peer can write has a fixed little-endian layout here, with a CRC-32C
//! (Castagnoli, RFC 3720) over all of it, because under F-3 a reader may see any mixture of old and
//! new bytes; slots and claims of a mailbox do without it where a fabric promises more (F-14).
//! Rules: a message never spans two slots, unused bytes are not read, and a decoder reads private
//! copies only and never panics.

pub mod broadcast;
mod cell;
pub mod group;
mod mutants;
pub mod rendezvous;
pub mod slot;

pub use crate::checksum::crc32c;
pub use cell::{CELL_LEN, Claim, Credit, Progress};
pub use mutants::MUTANTS;

// Inlined also in programs that are built without optimization across crates.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    let mut value = [0; 2];
    value.copy_from_slice(&bytes[offset..offset + 2]);
    u16::from_le_bytes(value)
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(value)
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(value)
}
