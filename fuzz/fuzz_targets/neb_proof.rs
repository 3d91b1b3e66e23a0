//! Proofs of equivocation: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::neb_proof::run(bytes));
