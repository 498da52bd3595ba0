//! Noise as checkpoints.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::checkpoints, bytes));
