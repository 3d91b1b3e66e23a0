//! Two endpoints and a liar: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::endpoint_ops::run(bytes));
