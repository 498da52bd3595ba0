//! Noise as HDF5 files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cuemark_fuzz::feed(cuemark_fuzz::hdf5, bytes));
