//! See `headwater::log::fuzzing::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::log::fuzzing::events(data));
