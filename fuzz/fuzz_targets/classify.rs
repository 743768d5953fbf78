//! See `headwater_statement::fuzzing::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_statement::fuzzing::text(data));
