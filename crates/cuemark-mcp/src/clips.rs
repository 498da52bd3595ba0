//! Clips that nobody said where to write: in a folder of ours, as long as the process lives.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use tempfile::TempDir;

/// The most clips that are kept; the oldest goes first.
const KEPT: usize = 32;

/// A temporary folder of clips, readable by this user alone and removed at the end.
#[derive(Debug)]
pub(crate) struct Clips {
    folder: TempDir,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    next: usize,
    kept: VecDeque<Utf8PathBuf>,
}

impl Clips {
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("cuemark-clips-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        Ok(Self { folder, names: Mutex::default() })
    }

    /// A name for the next clip.
    pub(crate) fn next(&self) -> Utf8PathBuf {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.next += 1;
        let path = self.folder.path().join(format!("clip-{}.mp4", names.next));
        // A temporary folder whose name is no UTF-8 gets another: the name is for assistants, who speak JSON.
        let path = Utf8PathBuf::from_path_buf(path).unwrap_or_else(|path| path.to_string_lossy().into_owned().into());
        names.kept.push_back(path.clone());
        if names.kept.len() > KEPT
            && let Some(oldest) = names.kept.pop_front()
        {
            // One that cannot be removed goes with the folder.
            let _ = std::fs::remove_file(oldest);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_clips_go_and_all_go_with_the_folder() {
        let clips = Clips::new().unwrap();
        let first = clips.next();
        std::fs::write(&first, "a clip").unwrap();
        let last = (0..KEPT).map(|_| clips.next()).last().unwrap();
        std::fs::write(&last, "a clip").unwrap();
        assert!(!first.exists() && last.exists());
        drop(clips);
        assert!(!last.exists());
    }
}
