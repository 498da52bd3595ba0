//! Noise as what people type: questions, addresses, names of metrics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::text, bytes));
