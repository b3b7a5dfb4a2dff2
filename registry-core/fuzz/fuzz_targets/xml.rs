//! See `properties::xml`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::xml(data));
