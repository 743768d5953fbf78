//! See `headwater_proxy::link::proxy_header::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| headwater_proxy::link::proxy_header::fuzz(data));
