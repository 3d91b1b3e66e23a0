//! The slot of a broadcast as its origin or a replayer may have left it: any bytes.
//!
//! Opening must not panic and leaves the copy as it was; what opens must have been sealed just so.
//! Since no random bytes carry a right checksum, every input is also sealed, and must then open
//! if its header is one.

use weft_core::wire::broadcast::{HEADER_LEN, Header, SlotError, seal, seq_of};
use weft_core::wire::crc32c;

/// One input.
pub fn run(bytes: &[u8]) {
    if bytes.len() < HEADER_LEN {
        return;
    }
    let mut copy = bytes.to_vec();
    let opened = Header::open(&mut copy, crc32c);
    assert_eq!(copy, bytes);
    let Ok(header) = Header::peek(bytes) else {
        assert_eq!(opened, Err(SlotError::Form));
        return;
    };
    assert_eq!(seq_of(bytes), header.stamp.seq);
    if header.used() > bytes.len() {
        assert_eq!(opened, Err(SlotError::Length));
        return;
    }
    let used = &mut copy[..header.used()];
    header.write(used);
    seal(used, crc32c);
    assert_eq!(Header::open(&mut copy, crc32c), Ok(header));
    match opened {
        Ok(header) => assert_eq!(copy[..header.used()], bytes[..header.used()]),
        Err(error) => assert_eq!(error, SlotError::Checksum),
    }
}
