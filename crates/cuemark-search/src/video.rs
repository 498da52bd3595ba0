//! What an index knows about one video.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::VideoId;
use serde::{Deserialize, Serialize};

use crate::{Result, SearchError};

/// What an index knows about one video.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoEntry {
    /// Its name, unique in the index: the file's name without its extension, unless the caller names it.
    pub id: VideoId,
    /// Where the file lay when it was indexed, from the root; `None` for videos known by their features only.
    pub path: Option<Utf8PathBuf>,
    /// **Seconds**.
    pub duration: f64,
    /// Size of the file; 0 without one.
    pub bytes: u64,
    /// When the file was last changed, in milliseconds since 1970; 0 without one.
    pub modified: i64,
    /// What the user calls it, sorted.
    pub tags: Vec<String>,
    /// Whether the file is still there.
    #[serde(default)]
    pub state: VideoState,
}

/// Whether the file of a video is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VideoState {
    /// It is, or was when last looked for. Default.
    #[default]
    Present,
    /// It was gone when last looked for; its moments are not found until it comes back.
    Vanished,
}

/// What tells a file from a changed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    pub(crate) modified: i64,
}

impl Stamp {
    /// Of the file at `path`.
    pub(crate) fn of(path: &Utf8Path) -> Result<Self> {
        let data = std::fs::metadata(path).map_err(SearchError::io("look at", path))?;
        let modified = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Ok(Self { bytes: data.len(), modified: modified.map_or(0, |since| since.as_millis() as i64) })
    }
}

impl VideoEntry {
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { bytes: self.bytes, modified: self.modified }
    }
}
