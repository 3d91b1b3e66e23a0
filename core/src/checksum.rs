//! CRC-32C (Castagnoli, RFC 3720), in software, for fabrics whose platform has no instruction.

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
