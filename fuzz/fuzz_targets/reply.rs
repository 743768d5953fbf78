//! See `headwater::wire::fuzzing::reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::wire::fuzzing::reply(data));
