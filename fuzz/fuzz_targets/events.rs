//! See `headwater_log::fuzzing::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_log::fuzzing::events(data));
