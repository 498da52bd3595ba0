//! Files to try things on.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

pub(crate) fn folder() -> (TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    (folder, path)
}

/// Runs ffmpeg to make a test file.
pub(crate) fn make(arguments: &[&str], to: &Utf8Path) {
    let output = Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments).arg(to).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A moving film of `seconds`, without loss of time: ten frames a second.
pub(crate) fn make_film(path: &Utf8Path, seconds: u32) {
    let moving = format!("testsrc=s=64x48:r=10:d={seconds}");
    make(&["-f", "lavfi", "-i", &moving, "-g", "10", "-c:v", "libx264", "-pix_fmt", "yuv420p"], path);
}
