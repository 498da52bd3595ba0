//! Training and answering from outside: run files, whole runs on small worlds, published text.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod joint;
mod long_videos;
mod published_text;
mod run;
mod run_files;
mod shipped;
