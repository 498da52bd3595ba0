//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use super::CARD;
use crate::layers::WordSource;
use crate::{ModelError, Result};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrnConfig {
    /// Clips that a video's features are averaged to; the last stride divides it. Default: 32
    pub clips: usize,
    /// Width of the query's LSTM, each way. Default: 512
    pub lstm: usize,
    /// Layers of the query's LSTM. Default: 1
    pub lstm_layers: usize,
    /// Channels of the first level; every level has twice those of the one before. Default: 256
    pub first: usize,
    /// Channels of the pyramid. Default: 512
    pub pyramid: usize,
    /// Width of a clip's position code. Default: 256
    pub position: usize,
    /// Convolutions of each tower of the head. Default: 1
    pub tower: usize,
    /// The levels, finest first.
    pub levels: Vec<Level>,
    /// How much a positive counts in the focal loss; a negative counts the rest. Default: 0.25
    pub alpha: f64,
    /// How much the focal loss turns from easy locations. Default: 2.0
    pub gamma: f64,
    /// Predictions with more overlap teach the overlap head. Default: 0.9
    pub overlap: f64,
    /// Which spans are clamped to the video in the overlap loss. Default: all
    pub clamp: Clamp,
    /// Locations with a lower score are no answers. Default: 0.05
    pub min_score: f64,
    /// The most answers of one level. Default: 32
    pub top: usize,
    /// Where word vectors come from. Default: given
    pub word_vectors: WordSource,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    pub nms: f64,
}

impl Default for DrnConfig {
    fn default() -> Self {
        Self {
            clips: 32,
            lstm: 512,
            lstm_layers: 1,
            first: 256,
            pyramid: 512,
            position: 256,
            tower: 1,
            // The published ranges overlap on purpose between the first two levels.
            levels: vec![
                Level { stride: 1, from: -1.0, to: 6.0 },
                Level { stride: 2, from: 5.6, to: 11.0 },
                Level { stride: 4, from: 11.0, to: 1e8 },
            ],
            alpha: 0.25,
            gamma: 2.0,
            overlap: 0.9,
            clamp: Clamp::default(),
            min_score: 0.05,
            top: 32,
            word_vectors: WordSource::default(),
            nms: 0.45,
        }
    }
}

/// One level of the pyramid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Clips between two locations; a multiple of the level before.
    pub stride: usize,
    /// Distances below this are another level's, in clips.
    pub from: f64,
    /// Distances above this are another level's, in clips.
    pub to: f64,
}

/// Which predicted spans are clamped to the video before their overlap is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clamp {
    /// All of them. Default.
    #[default]
    All,
    /// That of the first location alone, as a slip in the published code has it.
    First,
}

/// More than any video could fill; every level doubles the channels.
const MAX_LEVELS: usize = 8;

impl DrnConfig {
    /// How many locations of the level before lie between two of each level.
    pub(super) fn relative_strides(&self) -> Result<Vec<usize>> {
        if !(1..=MAX_LEVELS).contains(&self.levels.len()) {
            let problem = format!("`levels`: {} of them, from 1 to {MAX_LEVELS} can be", self.levels.len());
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        let mut before = 1;
        let mut strides = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let fits =
                level.stride > 0 && level.stride.is_multiple_of(before) && self.clips.is_multiple_of(level.stride);
            if !fits {
                let problem = format!(
                    "`levels`: stride {} does not divide `clips` = {} or is no multiple of the one before",
                    level.stride, self.clips
                );
                return Err(ModelError::Settings { model: CARD.name, problem });
            }
            strides.push(level.stride / before);
            before = level.stride;
        }
        Ok(strides)
    }
}
