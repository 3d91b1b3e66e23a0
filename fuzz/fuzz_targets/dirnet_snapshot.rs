//! What a node finds of its saved database: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::dirnet_snapshot::run(bytes));
