//! Readers and writers on whole files: small ones of our own, published ones where they are, and hostile ones.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests are tests too

mod answers;
mod hostile;
mod prediction_fixtures;
mod real_files;
mod round_trip;
mod schemas;
mod support;
mod truth_files;
