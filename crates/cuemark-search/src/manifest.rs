//! What an index is about: the file `index.json` in its folder.

use camino::Utf8Path;
use cuemark_formats::{Overwrite, WholeFile};
use serde::{Deserialize, Serialize};

use crate::{Calibration, Result, SearchError};

/// The layout that this program writes.
pub(crate) const LAYOUT: u32 = 1;

/// The manifest's name in the folder of an index.
pub(crate) const FILE: &str = "index.json";

/// What an index is about. Written when the index is made, whole or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the layout.
    pub layout: u32,
    /// The program that made it.
    pub cuemark: String,
    /// What made the embeddings: a run folder, or an encoder's name.
    pub encoder: String,
    /// Numbers per embedding.
    pub width: usize,
    /// From scores to probabilities.
    pub calibration: Calibration,
}

impl Manifest {
    /// Reads the manifest of the index in `folder`.
    ///
    /// # Errors
    /// When there is none, or it is of another version.
    pub fn read(folder: &Utf8Path) -> Result<Self> {
        let path = folder.join(FILE);
        let no_index = |problem: String| SearchError::NoIndex { path: folder.to_owned(), problem };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(no_index(format!("there is no `{FILE}`")));
            }
            Err(source) => return Err(SearchError::Io { what: "read", path, source }),
        };
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| no_index(format!("`{FILE}`: {error}")))?;
        if manifest.layout != LAYOUT {
            return Err(no_index(format!("layout {} of `{FILE}` is not {LAYOUT}", manifest.layout)));
        }
        if manifest.width == 0 || manifest.width > 1 << 16 {
            return Err(no_index(format!("`{FILE}`: width {} cannot be", manifest.width)));
        }
        Ok(manifest)
    }

    pub(crate) fn write(&self, folder: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        Ok(WholeFile::write_all_to(folder.join(FILE), overwrite, format!("{text}\n").as_bytes())?)
    }
}
