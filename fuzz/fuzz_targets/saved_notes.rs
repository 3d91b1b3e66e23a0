//! What a node finds of what it had saved: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::saved_notes::run(bytes));
