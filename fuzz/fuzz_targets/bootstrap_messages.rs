//! What a stranger says: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::bootstrap_messages::run(bytes));
