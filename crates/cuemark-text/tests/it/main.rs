//! Tags and parses on sentences that were checked by hand, on files, and on real queries where they lie.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod hand_checked;
mod parse_files;
mod real_queries;
