//! An endpoint's own regions, and the checksum that a fabric may bring.

use crate::fabric::{Fabric, Memory};

use super::Harness;
use super::regions::{A, EVERYONE, LEN, LOCAL, OPEN, OPEN_LEN, WORDS};
use super::trial::Trial;

/// Words and bytes are two views of one memory, the low byte of a word first; regions do not
/// overlap, not even those of different endpoints.
pub fn memory_words_and_bytes_agree<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "memory");
    for (peer, region) in EVERYONE.into_iter().flat_map(|peer| [(peer, LOCAL), (peer, WORDS)]) {
        let tag = 0x10 * (1 + peer.0 as u8) + region.0;
        trial.at(peer).memory().copy_in(region, 0, &[tag; LEN as usize]);
    }
    for (peer, region) in EVERYONE.into_iter().flat_map(|peer| [(peer, LOCAL), (peer, WORDS)]) {
        let tag = 0x10 * (1 + peer.0 as u8) + region.0;
        let mut bytes = [0; LEN as usize];
        trial.at(peer).memory().copy_out(region, 0, &mut bytes);
        trial.same("the bytes of one region", bytes, [tag; LEN as usize]);
    }
    for offset in [0, 8, LEN - 8] {
        trial.at(A).memory().store(LOCAL, offset, 0x0807_0605_0403_0201);
        let mut bytes = [0; 8];
        trial.at(A).memory().copy_out(LOCAL, offset, &mut bytes);
        trial.same("the bytes of a word", bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        trial.at(A).memory().copy_in(LOCAL, offset + 1, &[0xA, 0xB]);
        let word = trial.at(A).memory().load(LOCAL, offset);
        trial.same("a word with two bytes changed", word, 0x0807_0605_040B_0A01);
    }
    trial.at(A).memory().copy_in(OPEN, OPEN_LEN - 3, &[7, 8, 9]);
    let last = trial.at(A).memory().load(OPEN, OPEN_LEN - 8) >> 40;
    trial.same("the last bytes of a region", last, 0x09_0807);
    let memory = trial.at(A).memory();
    let held = [[7, 8, 9], [7, 8, 0], [0, 8, 9]].map(|end| memory.holds(OPEN, OPEN_LEN - 3, &end));
    trial.same("which of them are held", held, [true, false, false]);
    trial.end();
}

/// CRC-32C, a bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// Whatever instruction computes it, the checksum is CRC-32C at every length and alignment.
pub fn checksum_is_crc32c<H: Harness>(harness: &mut H) {
    let mut trial = Trial::new(harness, "checksum");
    let check = trial.at(A).crc32c(b"123456789");
    trial.same("the check value of RFC 3720", check, 0xE306_9283);
    let bytes: [u8; 300] = core::array::from_fn(|at| (at * 151 + 3) as u8);
    for begin in 0..8 {
        for len in (0..=72).chain([200, 292]) {
            let part = &bytes[begin..begin + len];
            let sum = trial.at(A).crc32c(part);
            trial.same("the checksum", sum, crc32c(part));
        }
    }
    trial.end();
}
