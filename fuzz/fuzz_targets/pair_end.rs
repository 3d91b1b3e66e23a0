//! The end of a pair over verbs: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::pair_end::run(bytes));
