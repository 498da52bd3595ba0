//! The readers on files of our own making, on the published files where they lie, and on files meant to break them.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod folders;
mod hostile;
mod on_fixtures;
mod on_published_files;
mod truth_files;
mod written_tables;
