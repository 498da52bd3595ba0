//! Streams that lie in different places, read as one.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{ClipLen, VideoId};

use crate::source::{FeatureSource, Origin, no_stream};
use crate::{FeatureError, Features, Result};

/// Several sources read as one: the picture from here, the subtitles from there.
#[derive(Debug)]
pub struct Joined(Vec<Arc<dyn FeatureSource>>);

impl Joined {
    /// Joins `sources`.
    ///
    /// # Errors
    /// When two of them have a stream of the same name.
    pub fn new(sources: Vec<Arc<dyn FeatureSource>>) -> Result<Self> {
        let joined = Self(sources);
        let streams = joined.streams();
        match streams.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
            None => Ok(joined),
            Some(stream) => Err(FeatureError::StreamTwice { stream: (*stream).to_owned() }),
        }
    }

    fn of(&self, stream: &str) -> Result<&dyn FeatureSource> {
        let holds = |source: &&Arc<dyn FeatureSource>| source.streams().contains(&stream);
        let found = self.0.iter().find(holds).map(AsRef::as_ref);
        found.ok_or_else(|| no_stream(Utf8Path::new("all sources together"), stream, &self.streams()))
    }
}

impl FeatureSource for Joined {
    fn streams(&self) -> Vec<&str> {
        let mut streams: Vec<&str> = self.0.iter().flat_map(|source| source.streams()).collect();
        streams.sort_unstable();
        streams
    }

    fn origin(&self, stream: &str) -> Result<Origin<'_>> {
        self.of(stream)?.origin(stream)
    }

    fn videos(&self, stream: &str) -> Vec<&VideoId> {
        self.of(stream).map(|source| source.videos(stream)).unwrap_or_default()
    }

    fn read(&self, video: &VideoId, stream: &str) -> Result<Features> {
        self.of(stream)?.read(video, stream)
    }

    fn clip_len(&self, video: &VideoId, stream: &str, rows: usize) -> Result<ClipLen> {
        self.of(stream)?.clip_len(video, stream, rows)
    }
}
