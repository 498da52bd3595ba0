//! An encoder that was not opened, in the place of the one that an index names.

use camino::Utf8Path;
use cuemark_core::{Advice, Progress, VideoId};

use super::{EmbeddedVideo, Encoder};
use crate::{Embedding, Manifest, Result, SearchError};

/// Stands for the encoder of an index that is only looked after.
pub(crate) struct AbsentEncoder {
    name: String,
    width: usize,
}

impl AbsentEncoder {
    pub(crate) fn of(about: &Manifest) -> Self {
        Self { name: about.encoder.clone(), width: about.width }
    }

    fn absent<T>(&self) -> Result<T> {
        Err(SearchError::Encoder {
            encoder: self.name.clone(),
            problem: "it was not opened".to_owned(),
            advice: Advice::say("open the index with its encoder to ask for what is seen or to add films"),
        })
    }
}

impl Encoder for AbsentEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.width
    }

    fn sentences(&self, _: &[&str]) -> Result<Vec<Embedding>> {
        self.absent()
    }

    fn video(&self, _: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
        self.absent()
    }
}
