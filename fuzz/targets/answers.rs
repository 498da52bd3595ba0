//! Noise as free-text answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::answers, bytes));
