//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{MatchingEncoderSize, TextTraining};
use crate::losses::{MutualMatching, ScaledIou};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrmConfig {
    /// Sizes of the network, which is MMN's.
    pub network: MatchingEncoderSize,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// The contrastive terms.
    #[serde(default)]
    pub matching: MutualMatching,
    /// How the sentence encoder is trained.
    #[serde(default)]
    pub text: TextTraining,
    /// What becomes of the phrases.
    #[serde(default)]
    pub phrases: PhraseConfig,
    /// What the matching score is raised to before it is multiplied with the overlap's. Default: 0.5
    #[serde(default = "half")]
    pub power: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "half")]
    pub nms: f64,
}

pub(super) fn half() -> f64 {
    0.5
}

/// What becomes of the phrases of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PhraseConfig {
    /// The most of one sentence; later ones are not read. Default: 10
    pub most: usize,
    /// Inner width of their attention. Default: 128
    pub attention: usize,
    /// Weight of the phrases' maps in the sentence's. Default: 1.0
    pub residual: f64,
    /// Chance of a phrase to be left out while training. Default: 0
    pub dropout: f64,
    /// Overlap with the span from which a cell may be the phrase's. Default: 0.1
    pub threshold: f64,
    /// Power of the factor that makes easy phrases count less. Default: 2
    pub focal: f64,
    /// Weight of consistency: every phrase is somewhere in the span and nowhere in another video. Default: 1.0
    pub consistency: f64,
    /// Weight of exclusiveness: outside the span some phrase is missing. Default: 0
    pub exclusiveness: f64,
}

impl Default for PhraseConfig {
    fn default() -> Self {
        Self {
            most: 10,
            attention: 128,
            residual: 1.0,
            dropout: 0.0,
            threshold: 0.1,
            focal: 2.0,
            consistency: 1.0,
            exclusiveness: 0.0,
        }
    }
}
