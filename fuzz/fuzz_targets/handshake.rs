//! See `headwater_wire::fuzzing::handshake`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_wire::fuzzing::handshake(data));
