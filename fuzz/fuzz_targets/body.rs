//! See `headwater_timeline::body::fuzzing::shown`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_timeline::body::fuzzing::shown(data));
