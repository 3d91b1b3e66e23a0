//! CRC-32C by the processor's own instruction, where it has one.
//!
//! A message is checked at both ends, so this is on the path of every message. For a short one, one
//! instruction after the other is fastest. `crc-fast` computes several parts of a long one at once,
//! by the widest instructions that the processor has, but takes longer to begin.

use crc_fast::CrcAlgorithm;

/// From here on `crc-fast` is faster; at 256 bytes the two are equal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const LONG: usize = 384;

/// CRC-32C of `bytes`.
#[inline]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // Without carry-less multiplication `crc-fast` falls back to a table.
    if std::arch::is_x86_feature_detected!("sse4.2")
        && (bytes.len() < LONG || !std::arch::is_x86_feature_detected!("pclmulqdq"))
    {
        // SAFETY: the processor has SSE 4.2, as just detected.
        return unsafe { crc32c_sse42(bytes) };
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("crc")
        && (bytes.len() < LONG || !std::arch::is_aarch64_feature_detected!("aes"))
    {
        // SAFETY: the processor has the instructions, as just detected.
        return unsafe { crc32c_arm(bytes) };
    }
    crc32c_long(bytes)
}

/// CRC-32C by `crc-fast`: out of line, so that a short message does not pay for it.
#[inline(never)]
fn crc32c_long(bytes: &[u8]) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "it has 32 bits")]
    let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    crc
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn crc32c_sse42(bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};
    let mut crc = u64::from(u32::MAX);
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        // A loop of a known length: the compiler unrolls it.
        for word in block.as_chunks::<8>().0 {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
    }
    let (words, tail) = rest.as_chunks::<8>();
    for word in words {
        crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the instruction leaves 32 bits")]
    let mut crc = crc as u32;
    if tail.is_empty() {
        return !crc;
    }
    // Claims and credits end in half a word.
    let (halves, tail) = tail.as_chunks::<4>();
    for half in halves {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*half));
    }
    for byte in tail {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "crc")]
fn crc32c_arm(bytes: &[u8]) -> u32 {
    use std::arch::aarch64::{__crc32cb, __crc32cd, __crc32cw};
    let (words, tail) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u32::MAX, |crc, word| __crc32cd(crc, u64::from_le_bytes(*word)));
    let (halves, tail) = tail.as_chunks::<4>();
    let crc = halves.iter().fold(crc, |crc, half| __crc32cw(crc, u32::from_le_bytes(*half)));
    !tail.iter().fold(crc, |crc, byte| __crc32cb(crc, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_core::wire;

    proptest! {
        #[test]
        fn instructions_and_table_agree(bytes in proptest::collection::vec(any::<u8>(), 0..3_000)) {
            prop_assert_eq!(crc32c(&bytes), wire::crc32c(&bytes));
        }
    }
}
