//! See `properties::filter`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::filter(data));
