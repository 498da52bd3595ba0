//! The readers on files of our own making, on the published files where they lie, and on files meant to break them.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on stops, and skips are announced")]

mod folders;
mod hostile;
mod on_fixtures;
mod on_published_files;
mod truth_files;
mod written_tables;
