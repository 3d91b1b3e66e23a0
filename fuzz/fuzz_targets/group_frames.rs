//! Frames of a third member into two members of a group: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::group_frames::run(bytes));
