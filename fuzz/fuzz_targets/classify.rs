//! See `headwater::statement::fuzzing::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::statement::fuzzing::text(data));
