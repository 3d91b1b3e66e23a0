//! The slot of a mailbox or lane as a peer may have left it: any bytes.
//!
//! Opening must not panic; what opens must have been sealed just so. Since no random bytes carry
//! a right checksum, every input is also sealed, and must then open.

use weft_core::wire::crc32c;
use weft_core::wire::slot::{SlotError, Stamp, TRAILER_LEN, Trailer, cleared, seal, used};

/// One input.
pub fn run(bytes: &[u8]) {
    let Some(trailer) = bytes.last_chunk::<TRAILER_LEN>() else { return };
    let [len, _, word] = [0, 8, 16].map(|at| {
        let bytes = trailer[at..].first_chunk::<8>().expect("a trailer has three words");
        u64::from_le_bytes(*bytes)
    });
    let (len, run) = ((len & 0xFFFF) as usize, (word >> 48) as u16);
    let stamp = Stamp::from_word(cleared(word));
    let mut copy = bytes.to_vec();
    match Trailer::open(&mut copy, stamp, crc32c) {
        Ok(trailer) => {
            let mut sealed = bytes.to_vec();
            seal(&mut sealed, stamp, run, trailer.sequence, crc32c);
            assert_eq!(sealed, bytes);
        }
        Err(SlotError::Length) => assert!(used(len) > bytes.len()),
        Err(SlotError::Checksum) => {
            let mut sealed = bytes.to_vec();
            seal(&mut sealed, stamp, run, 7, crc32c);
            let trailer = Trailer::open(&mut sealed, stamp, crc32c).expect("it was sealed");
            assert_eq!((trailer.sequence, usize::from(trailer.len)), (7, len));
        }
        Err(SlotError::Stamp) => assert_eq!(run, 0, "the stamp is the slot's own"),
    }
    let other = Stamp { epoch: stamp.epoch.wrapping_add(2), ..stamp };
    assert_eq!(Trailer::open(&mut bytes.to_vec(), other, crc32c), Err(SlotError::Stamp));
}
