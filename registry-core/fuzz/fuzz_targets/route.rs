//! See `properties::route`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::route(data));
