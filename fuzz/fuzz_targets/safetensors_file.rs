//! Files of tensors with names: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::safetensors_file::run(bytes));
