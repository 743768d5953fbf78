//! See `headwater::wire::fuzzing::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::wire::fuzzing::frame(data));
