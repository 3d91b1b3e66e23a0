//! The mailbox slot as a peer may have left it: any bytes.
//!
//! Decoding must not panic, and two looks at the same bytes must agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_core::wire::slot::{Header, decode};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = decode(bytes) {
        let again: Result<Header, _> = decode(bytes);
        assert_eq!(again, Ok(header));
    }
});
