//! The slot of a mailbox or lane as a peer may have left it: any bytes.
//!
//! Opening must not panic; what opens must have been sealed just so. Since no random bytes carry
//! a right checksum, every input is also sealed, and must then open.

use weft_core::wire::crc32c;
use weft_core::wire::slot::{HEADER_LEN, Header, SlotError, Stamp, seal};

fn stamp_of(bytes: &[u8]) -> Stamp {
    let word = bytes[8..16].first_chunk::<8>().map(|word| u64::from_le_bytes(*word));
    Stamp::from_word(word.unwrap_or_default())
}

/// One input.
pub fn run(bytes: &[u8]) {
    if bytes.len() < HEADER_LEN {
        return;
    }
    let stamp = stamp_of(bytes);
    let len = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let mut copy = bytes.to_vec();
    match Header::open(&mut copy, stamp, crc32c) {
        Ok(header) => {
            let mut sealed = bytes.to_vec();
            seal(&mut sealed, stamp, header.sequence, crc32c);
            assert_eq!(sealed, bytes);
        }
        Err(SlotError::Length) => assert!(HEADER_LEN + len > bytes.len()),
        Err(SlotError::Checksum) => {
            let mut sealed = bytes.to_vec();
            seal(&mut sealed, stamp, 7, crc32c);
            let header = Header::open(&mut sealed, stamp, crc32c).expect("it was sealed");
            assert_eq!((header.sequence, usize::from(header.len)), (7, len));
        }
        Err(SlotError::Stamp) => panic!("the stamp is the slot's own"),
    }
    let other = Stamp { epoch: stamp.epoch.wrapping_add(2), ..stamp };
    assert_eq!(Header::open(&mut bytes.to_vec(), other, crc32c), Err(SlotError::Stamp));
}
