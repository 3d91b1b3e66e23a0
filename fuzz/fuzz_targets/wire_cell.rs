//! Claims and credits: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wire_cell::run(bytes));
