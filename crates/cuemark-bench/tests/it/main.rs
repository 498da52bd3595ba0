//! Reports, matrices and the leaderboard on the files of this repository.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod evaluation_schema;
mod leaderboard;
mod matrix_files;
mod report_page;
mod shared;
