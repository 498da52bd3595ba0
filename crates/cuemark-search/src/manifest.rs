//! What an index is about: the file `index.json` in its folder.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::engine::disk::{Disk, RealDisk, read_small, write_whole};
use crate::engine::limits;
use crate::{Calibration, Result, SearchError};

/// The layout that this program writes. It reads the first as well, whose logs have no identity, and the second, whose logs have
/// no words.
pub(crate) const LAYOUT: u32 = 3;

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
    /// The identity of the log that it describes, so that neither is taken for part of another index; `None` where the
    /// engine has no log, or one of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Files of the encoder that the index keeps below `encoder/`, with the SHA-256 of each; none where the encoder is found
    /// by its name, or the engine has no folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, String>,
}

impl Manifest {
    /// Reads the manifest of the index in `folder`.
    ///
    /// # Errors
    /// When there is none, or it is of another version.
    pub fn read(folder: &Utf8Path) -> Result<Self> {
        Self::read_on(&RealDisk, folder)
    }

    /// As [`Manifest::read`], on another disk.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn read_on(disk: &dyn Disk, folder: &Utf8Path) -> Result<Self> {
        let path = folder.join(FILE);
        let no_index = |problem: String| SearchError::NoIndex { path: folder.to_owned(), problem };
        let text = match read_small(disk, &path, limits::MANIFEST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(no_index(format!("there is no `{FILE}`")));
            }
            Err(source) => return Err(SearchError::Io { what: "read", path, source }),
        };
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| no_index(format!("`{FILE}`: {error}")))?;
        if !manifest.has_known_layout() {
            return Err(no_index(format!("layout {} of `{FILE}` is not 1 to {LAYOUT}", manifest.layout)));
        }
        if manifest.width == 0 || manifest.width > limits::WIDTH {
            return Err(no_index(format!("`{FILE}`: width {} cannot be", manifest.width)));
        }
        Ok(manifest)
    }

    /// Whether it is of a layout that this program reads.
    pub(crate) fn has_known_layout(&self) -> bool {
        (1..=LAYOUT).contains(&self.layout)
    }

    /// Puts the manifest in the folder, in place of an earlier one.
    pub(crate) fn write_on(&self, disk: &dyn Disk, folder: &Utf8Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let written = write_whole(disk, folder, "index.part", FILE, text.as_bytes());
        written.map_err(SearchError::io("write", &folder.join(FILE)))
    }
}
