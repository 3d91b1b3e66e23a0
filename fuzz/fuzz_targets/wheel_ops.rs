//! A wheel beside a sorted map: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wheel_ops::run(bytes));
