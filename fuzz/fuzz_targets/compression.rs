//! See `headwater_wire::fuzzing::compression`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_wire::fuzzing::compression(data));
