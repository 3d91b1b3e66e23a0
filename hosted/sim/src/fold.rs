//! A fast hash for telling states apart.

use std::hash::Hasher;

/// A hash of eight bytes at a time: folded multiplication, as in wyhash.
#[derive(Clone, Copy, Default)]
pub(super) struct Folded(u64);

impl Folded {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0xA076_1D64_78BD_642F)
            * u128::from(0xE703_7ED1_A0B4_28DB_u64);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(word) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, number: u8) {
        self.fold(u64::from(number));
    }

    fn write_u16(&mut self, number: u16) {
        self.fold(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.fold(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    // Lengths, and which variant of an enum it is: half of all that is hashed.
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use super::*;

    fn folded(value: impl Hash) -> u64 {
        let mut hasher = Folded::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// States that differ in one of these and had one fingerprint would be walked once.
    #[test]
    fn every_kind_of_field_tells_states_apart() {
        let apart = [
            folded(1_u8) != folded(2_u8),
            folded(1_u16) != folded(2_u16),
            folded(1_u32) != folded(2_u32),
            folded(1_u64) != folded(2_u64),
            folded(1_u128) != folded(2_u128),
            folded(1_usize) != folded(2_usize),
            folded(-1_i64) != folded(1_i64),
            folded(true) != folded(false),
            folded("a") != folded("b"),
            // Which variant it is.
            folded(Ok::<u8, u8>(1)) != folded(Err::<u8, u8>(1)),
            // In which order, and how many.
            folded([1_u16, 2]) != folded([2_u16, 1]),
            folded([vec![1_u8], vec![]]) != folded([vec![], vec![1_u8]]),
        ];
        assert_eq!(apart, [true; 12]);
    }
}
