//! See `headwater::wire::fuzzing::collector`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::wire::fuzzing::collector(data));
