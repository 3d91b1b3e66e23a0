//! Broadcasts beside a liar: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::neb_regions::run(bytes));
