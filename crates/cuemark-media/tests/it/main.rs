//! Video files, through the real programs.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod decoding;
mod finding;
mod hostile;
mod made;
mod sound;
