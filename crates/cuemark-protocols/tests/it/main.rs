//! Splits and rewrites on fixtures, on the published files where they lie, and against programs and servers.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod published_splits;
mod rewriting;
mod splits_of_the_fixture;
