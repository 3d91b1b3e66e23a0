//! A message of the rendezvous, as another member may have sent it: any bytes.
//!
//! Decoding must not panic, and what decodes must have been encoded just so.

use weft_core::rendezvous::Key;
use weft_core::wire::rendezvous::{HEAD_LEN, Head, Kind};

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok((head, behind)) = Head::decode(bytes) else { return };
    assert_eq!(head.encode(), bytes[..HEAD_LEN]);
    assert_eq!(behind, &bytes[HEAD_LEN..]);
    assert!(head.part < head.parts);
    if let Some(shape) = head.shape {
        assert!(head.bytes <= shape.bytes());
    }
    if head.kind == Kind::TensorRequest {
        let _ = Key::parse(behind);
    }
}
