//! Messages of the rendezvous: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::wire_rendezvous::run(bytes));
