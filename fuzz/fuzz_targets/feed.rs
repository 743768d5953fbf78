//! See `headwater_feed::fuzzing::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_feed::fuzzing::text(data));
