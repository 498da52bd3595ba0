//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{MatchingEncoderSize, TextTraining};
use crate::losses::{MutualMatching, Sampling, ScaledIou};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmmnConfig {
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
    /// Similarity of a query with a video's own queries above which the two are no reliable negative pair. Default: 0.9
    #[serde(default = "threshold")]
    pub threshold: f64,
    /// Whose losses. Default: paper
    #[serde(default)]
    pub form: Form,
    /// Whether the second training stage learns from sampled negatives; without, it goes on as the first. Default: true
    #[serde(default = "step2")]
    pub step2: bool,
    /// How those are sampled.
    #[serde(default)]
    pub sampling: Sampling,
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

fn threshold() -> f64 {
    0.9
}

fn step2() -> bool {
    true
}

fn half() -> f64 {
    0.5
}

/// Whose losses are trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Unreliable pairs are left out. Default.
    #[default]
    Paper,
    /// As the released code computes them.
    Released,
}
