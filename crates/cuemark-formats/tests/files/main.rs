//! Readers and writers on whole files: small ones of our own, published ones where they are, and hostile ones.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod answers;
mod hostile;
mod prediction_fixtures;
mod real_files;
mod round_trip;
mod schemas;
mod support;
mod truth_files;
