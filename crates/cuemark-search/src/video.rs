//! What an index knows about one video.

use camino::Utf8PathBuf;
use cuemark_core::{Track, VideoId};
use cuemark_media::{Partial, Stamp};
use serde::{Deserialize, Serialize};

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
    /// What of its file could not be read; `None` of a whole film, and in indexes made before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// What tells its file from others wherever it lies, see `cuemark_media::ContentDigest`; `None` without a file, and in
    /// indexes made before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What was read of its tracks of words, and which of its tracks could not be read; empty in indexes made before this was
    /// kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<TrackRead>,
}

/// What became of one track of a video when it was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackRead {
    /// Which track.
    pub track: Track,
    /// What it was read from, such as `film.en.srt` or a recogniser's name: when this changes, the track is read again.
    pub from: String,
    /// Lines that were found.
    pub lines: usize,
    /// Why it could not be read; `None` when it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
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

impl VideoEntry {
    /// A whole video of so many **seconds** that is known by its features: it has no file and no tags.
    pub fn without_file(id: impl Into<VideoId>, duration: f64) -> Self {
        Self {
            id: id.into(),
            path: None,
            duration,
            bytes: 0,
            modified: 0,
            tags: Vec::new(),
            state: VideoState::Present,
            partial: None,
            digest: None,
            tracks: Vec::new(),
        }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { bytes: self.bytes, modified: self.modified }
    }
}
