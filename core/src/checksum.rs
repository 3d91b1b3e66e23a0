//! CRC-32C (Castagnoli, RFC 3720), in software, for fabrics whose platform has no instruction; and
//! FNV-1a, for numbers that differ, all but certainly, when two configurations do.

const CASTAGNOLI: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// CRC-32C of `bytes`.
#[must_use]
pub const fn crc32c(bytes: &[u8]) -> u32 {
    CASTAGNOLI.checksum(bytes)
}

/// CRC-32C of all `parts`, one behind the other.
#[must_use]
pub fn crc32c_of(parts: &[&[u8]]) -> u32 {
    let mut digest = CASTAGNOLI.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// 64-bit FNV-1a of `words`.
pub fn fnv1a(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_have_the_checksum_of_the_whole() {
        assert_eq!(super::crc32c_of(&[b"1234", b"", b"56789"]), super::crc32c(b"123456789"));
    }

    #[test]
    fn the_check_value_of_rfc_3720_holds() {
        assert_eq!(super::crc32c(b"123456789"), 0xE306_9283);
    }
}
