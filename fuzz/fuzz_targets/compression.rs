//! See `headwater::wire::fuzzing::compression`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::wire::fuzzing::compression(data));
