//! See `headwater_feed::fuzzing::plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_feed::fuzzing::plan(data));
