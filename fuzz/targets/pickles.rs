//! Noise as pickles and weight files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::pickles, bytes));
