//! Noise as a search index's manifest.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::manifest, bytes));
