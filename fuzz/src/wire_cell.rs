//! Claims and credits as a peer may have left them: any bytes.
//!
//! Decoding must not panic, and what decodes must encode to the same bytes. The input is also
//! given its right checksum, which random bytes never have.

use weft_core::wire::{CELL_LEN, Claim, Credit, crc32c};

/// One input.
pub fn run(bytes: &[u8]) {
    let Some(cell) = bytes.first_chunk::<CELL_LEN>() else { return };
    let mut checked = *cell;
    checked[12..].copy_from_slice(&crc32c(&cell[..12]).to_le_bytes());
    for cell in [*cell, checked] {
        if let Some(claim) = Claim::decode(&cell, crc32c) {
            let again = claim.encode(crc32c);
            // Idle and Reserving leave words unused, which their decoder does not read.
            assert_eq!(Claim::decode(&again, crc32c), Some(claim));
        }
        if let Some(credit) = Credit::decode(&cell, crc32c) {
            assert_eq!(credit.encode(crc32c), cell);
        }
    }
    assert!(Credit::decode(&checked, crc32c).is_some());
}
