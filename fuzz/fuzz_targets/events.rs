//! See `headwater::feed::fuzzing::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::feed::fuzzing::events(data));
