//! One way to read features, whatever they lie in.

use std::fmt;

use camino::Utf8Path;
use cuemark_core::{ClipLen, VideoId};

use crate::{FeatureError, Features, Layout, Recipe, Result, RowTime};

/// The stream of what is seen: what our extractors write, and what is read when nobody names another.
pub const VISUAL: &str = "visual";

/// Features by video and stream. Reading is safe from many threads at once.
pub trait FeatureSource: fmt::Debug + Send + Sync {
    /// The streams that are there, sorted.
    fn streams(&self) -> Vec<&str>;

    /// Where a stream comes from.
    ///
    /// # Errors
    /// When there is no such stream; the message lists those there are.
    fn origin(&self, stream: &str) -> Result<Origin<'_>>;

    /// The videos that have a stream, sorted by name; none when there is no such stream.
    fn videos(&self, stream: &str) -> Vec<&VideoId>;

    /// The features of one video, whatever its numbers are; to look at, not to compute with.
    ///
    /// # Errors
    /// When the stream or the video is not there, or its file is damaged.
    fn read(&self, video: &VideoId, stream: &str) -> Result<Features>;

    /// What each of a video's `rows` rows stands for.
    ///
    /// # Errors
    /// When nobody said so: a clip length is never assumed.
    fn clip_len(&self, video: &VideoId, stream: &str, rows: usize) -> Result<ClipLen>;

    /// The features of one video.
    ///
    /// # Errors
    /// As [`FeatureSource::read`], and when a number is NaN or infinite.
    fn get(&self, video: &VideoId, stream: &str) -> Result<Features> {
        let features = self.read(video, stream)?;
        match features.first_bad_row() {
            None => Ok(features),
            Some(row) => {
                let path = self.origin(stream)?.path.to_owned();
                Err(FeatureError::NotFinite { path, tensor: format!("{stream}/{video}"), row })
            }
        }
    }
}

/// Where a stream comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file or folder.
    pub path: &'a Utf8Path,
    /// Its layout.
    pub layout: Layout,
    /// How the features were made; `None` for layouts that do not say.
    pub recipe: Option<&'a Recipe>,
    /// What one row stands for; `None` when nobody said.
    pub row_time: Option<RowTime>,
}

pub(crate) fn no_stream(path: &Utf8Path, stream: &str, present: &[&str]) -> FeatureError {
    let names: Vec<String> = present.iter().map(|name| format!("`{name}`")).collect();
    FeatureError::NoStream { folder: path.to_owned(), stream: stream.to_owned(), present: names.join(", ") }
}
