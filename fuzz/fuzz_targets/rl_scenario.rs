//! An operator's scenario: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::rl_scenario::run(bytes));
