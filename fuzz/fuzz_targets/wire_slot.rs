//! The slot of a mailbox or lane: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wire_slot::run(bytes));
