//! A frame of a group, or the entry of a message, as another member may have sent it: any bytes.
//!
//! The first byte is the kind of the frame. Decoding must not panic, and what decodes must have
//! been encoded just so. Since no random bytes carry a right checksum, every entry is also sealed,
//! and must then open.

use weft_core::wire::crc32c;
use weft_core::wire::group::{ENTRY_LEN, Entry, FORWARD, Frame, Head};

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Some((head, rest)) = Head::decode(bytes) else { return };
    if u16::from(*kind) == FORWARD {
        return entry(rest);
    }
    if let Some(frame) = Frame::decode(u16::from(*kind), rest) {
        let (encoded, copy, len) = frame.encode(head);
        assert_eq!((encoded, &copy[..len]), (u16::from(*kind), bytes));
    }
}

fn entry(bytes: &[u8]) {
    let mut copy = bytes.to_vec();
    let opened = Entry::open(&mut copy, crc32c);
    assert_eq!(copy, bytes);
    let Some(entry) = Entry::peek(bytes) else {
        assert_eq!(opened, None);
        return;
    };
    let used = ENTRY_LEN.checked_add(entry.payload_len()).filter(|used| *used <= bytes.len());
    let Some(used) = used else {
        assert_eq!(opened, None);
        return;
    };
    entry.seal(&mut copy[..used], crc32c);
    assert_eq!(Entry::open(&mut copy, crc32c), Some(entry));
    if opened.is_some() {
        assert_eq!(copy, bytes);
    }
}
