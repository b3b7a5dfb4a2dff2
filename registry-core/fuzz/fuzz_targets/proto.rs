//! See `calls::proto`.

#![no_main]

#[path = "../calls.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|data: &[u8]| calls::proto(data));
