//! The image of a recovery script: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::rl_image::run(bytes));
