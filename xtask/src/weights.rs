//! Published weights that tests read: pulled once through the program itself, kept below the build folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::{scratch_folder, target_folder, watch};

/// What tests want, by the names of `cuemark weights list`.
const WANTED: &[&str] = &["minilm", "i3d", "efficientnet-lite0", "pp-ocrv4", "whisper-tiny-en", "silero-vad"];

/// Where they are kept.
pub(crate) fn cache() -> Result<PathBuf> {
    scratch_folder("cache")
}

/// Pulls what is missing with the program that was just built.
///
/// A machine without a network can still run everything else: the tests that want weights note themselves as skipped.
pub(crate) fn pull() -> Result<()> {
    let program = target_folder()?.join("debug/cuemark");
    for name in WANTED {
        let mut command = Command::new(&program);
        let pulled = watch(command.args(["weights", "pull", name]).env("CUEMARK_CACHE", cache()?));
        if !pulled.is_ok_and(|watched| watched.ok) {
            println!("SKIPPED: the weights `{name}` cannot be pulled here; tests that want them will check nothing");
        }
    }
    Ok(())
}
