//! See `headwater_wire::fuzzing::collector`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_wire::fuzzing::collector(data));
