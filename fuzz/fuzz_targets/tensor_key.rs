//! Names of tensors: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::tensor_key::run(bytes));
