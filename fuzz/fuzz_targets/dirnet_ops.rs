//! What others say to a component and an I'm-Alive Task: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::dirnet_ops::run(bytes));
