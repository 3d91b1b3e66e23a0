//! Frames and entries of groups: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wire_group::run(bytes));
