//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{MatchingEncoderSize, TextTraining};
use crate::losses::{MutualMatching, ScaledIou};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmnConfig {
    /// Sizes of the network.
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
    /// Videos whose sentences and moments are each other's negatives; the batch is cut into parts of so many, as several
    /// GPUs would. Default: the whole batch
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// What the matching score is raised to before it is multiplied with the overlap's. Default: 0.5
    #[serde(default = "half")]
    pub power: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    #[serde(default = "half")]
    pub nms: f64,
    /// How much of an embedding for search is the matching space, 0 to 1; the overlap's, which has only ever compared moments of
    /// one video, has the rest. Default: 0.5
    #[serde(default = "half")]
    pub matching_share: f64,
}

fn half() -> f64 {
    0.5
}
