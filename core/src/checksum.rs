//! CRC-32C (Castagnoli, RFC 3720), in software, for fabrics whose platform has no instruction.

const CASTAGNOLI: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    CASTAGNOLI.checksum(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_rfc_3720_holds() {
        assert_eq!(super::crc32c(b"123456789"), 0xE306_9283);
    }
}
