//! See `headwater::wire::fuzzing::execute`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater::wire::fuzzing::execute(data));
