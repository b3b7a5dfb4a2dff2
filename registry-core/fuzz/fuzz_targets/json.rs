//! See `properties::json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::json(data));
