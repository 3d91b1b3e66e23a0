//! The name of a tensor, as a peer may have sent it: any bytes.
//!
//! Parsing must not panic, and the parts of a key must give the same key.

use weft_core::rendezvous::Key;

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok(key) = Key::parse(bytes) else { return };
    assert_eq!(key.name(), bytes);
    let text = std::str::from_utf8(bytes).expect("a key is text");
    let mut parts = text.split(';').skip(3);
    let (edge, frame) = (parts.next().expect("an edge"), parts.next().expect("a frame"));
    let again = Key::new((key.source(), key.boot()), key.destination(), (edge, frame));
    assert_eq!(again, Ok(key));
}
