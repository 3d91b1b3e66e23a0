//! What a manager knows when it evaluates a recovery script: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::rl_facts::run(bytes));
