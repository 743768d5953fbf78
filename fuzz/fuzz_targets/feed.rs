//! See `headwater::feed::fuzzing::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::feed::fuzzing::text(data));
