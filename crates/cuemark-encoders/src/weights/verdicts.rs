//! Which pinned files were read from end to end and found to be what they should be.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use camino::Utf8Path;
use cuemark_formats::{Overwrite, WholeFile};
use serde::{Deserialize, Serialize};

use super::archive;
use super::registry::PinnedFile;
use crate::{EncodeError, Result};

/// Where the verdicts lie, beside the weights.
const FILE: &str = ".verified";

/// Verdicts by the file's name. One says nothing about a file that has changed since, nor about one whose pin has.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Verdicts(BTreeMap<String, Stamp>);

/// What a file was when its checksum held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stamp {
    /// In bytes.
    size: u64,
    /// Nanoseconds since 1970.
    changed: u128,
    sha256: String,
}

impl Verdicts {
    /// Those of `folder`; none when there are none or they cannot be read.
    pub(super) fn of(folder: &Utf8Path) -> Self {
        let read = std::fs::read(folder.join(FILE)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Holds every file of `folder` that has no verdict to its checksum, and remembers that it did.
    ///
    /// # Errors
    /// For the first file whose checksum is another.
    pub(super) fn hold(mut self, folder: &Utf8Path, files: &[PinnedFile], name: &'static str) -> Result<()> {
        let mut looked = false;
        for file in files {
            let path = folder.join(file.name);
            // Taken before the file is read: one that changes meanwhile has no verdict.
            let stamp = Stamp::of(&path, file);
            if stamp.is_some() && self.0.get(file.name) == stamp.as_ref() {
                continue;
            }
            archive::verify(&path, file).map_err(|problem| EncodeError::Damaged { path, problem, name })?;
            if let Some(stamp) = stamp {
                self.0.insert(file.name.to_owned(), stamp);
                looked = true;
            }
        }
        if looked && let Ok(text) = serde_json::to_vec(&self) {
            // Whoever may not write here reads the files again the next time.
            let _ = WholeFile::write_all_to(folder.join(FILE), Overwrite::Force, &text);
        }
        Ok(())
    }
}

impl Stamp {
    fn of(path: &Utf8Path, file: &PinnedFile) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Self { size: metadata.len(), changed, sha256: file.sha256.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// Of something else.
    const SUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn a_file_is_read_once_and_again_when_it_changed() {
        let keep = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(keep.path()).unwrap();
        let path = folder.join("w.bin");
        std::fs::write(&path, b"weights").unwrap();
        let digits: String = Sha256::digest(b"weights").iter().map(|byte| format!("{byte:02x}")).collect();
        let right: &'static str = digits.leak();
        let pinned = |sha256| [PinnedFile { name: "w.bin", inside: "w.bin", bytes: 7, sha256 }];
        let hold = |sha256| Verdicts::of(folder).hold(folder, &pinned(sha256), "w");
        assert!(matches!(hold(SUM), Err(EncodeError::Damaged { .. })));
        assert!(!folder.join(FILE).exists());
        hold(right).unwrap();
        // Changed under the same size and time: the verdict stands, which is what it is for.
        let time = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, b"weightz").unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        hold(right).unwrap();
        // Another time: read again, and found out.
        file.set_modified(time + std::time::Duration::from_secs(1)).unwrap();
        assert!(matches!(hold(right), Err(EncodeError::Damaged { .. })));
        // A verdict about another pin says nothing.
        assert!(matches!(hold(SUM), Err(EncodeError::Damaged { .. })));
    }
}
