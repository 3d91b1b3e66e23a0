//! Messages of a third member into two members that exchange tensors: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::rendezvous_ops::run(bytes));
