//! What others note about a node: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::chronicle_entries::run(bytes));
