//! The slot of a broadcast: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wire_broadcast::run(bytes));
