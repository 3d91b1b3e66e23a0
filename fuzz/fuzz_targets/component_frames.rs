//! What a component says to its supervisor: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::component_frames::run(bytes));
