//! Noise as durations, video numbers, ratings and re-annotations.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::side_files, bytes));
