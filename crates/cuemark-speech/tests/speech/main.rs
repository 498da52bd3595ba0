//! Films and their words, through the real programs and, where they have been pulled, the real weights.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod hearing;
mod subtitles;

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

fn folder() -> (TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    (folder, path)
}

/// Runs ffmpeg to make a test file.
fn make(arguments: &[&str], to: &Utf8Path) {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
