//! What an earlier incarnation left in a mailbox: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::mailbox_attach::run(bytes));
