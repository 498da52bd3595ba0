//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::PairLimits;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConquerConfig {
    /// Clips that every video is cut or padded to. Default: 100
    pub clips: usize,
    /// Words that every query is cut or padded to. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, leaves the video alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Width of everything. Default: 768
    pub hidden: usize,
    /// Width of the feed-forward layers. Default: 3072
    pub wide: usize,
    /// Heads of every attention. Default: 12
    pub heads: usize,
    /// Layers of the query's and of every other transformer. Default: 1 and 1
    pub layers: Layers,
    /// Clusters that the words are pooled by. Default: 32
    pub clusters: usize,
    /// Width of the scoring heads. Default: 128
    pub scoring: usize,
    /// Clips that a scoring head sees. Default: 5
    pub kernel: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// How moments of different videos are compared. Default: general
    pub measure: Measure,
    /// Clips between start and end of an answer. Default: 0 to 23
    pub pairs: PairLimits,
    /// Other videos that each query is trained against. Default: 3
    pub negatives: usize,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// Weight of the video loss of the exclusive measure. Default: 0.05
    pub video_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: none; the published best run has 0.7
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nms: Option<f64>,
}

/// Layers of the transformers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// Of the query's.
    pub query: usize,
    /// Of every other.
    pub video: usize,
}

/// How moments of different videos are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// First-stage score times the two probabilities; videos keep the order of the first stage.
    General,
    /// A score of its own, softmax over the videos asked, times the two probabilities; videos are ranked by it.
    Exclusive,
    /// The sum of the two logits; a video is as good as its best moment.
    Disjoint,
}

impl Default for ConquerConfig {
    fn default() -> Self {
        Self {
            clips: 100,
            words: 30,
            subtitle: None,
            hidden: 768,
            wide: 3072,
            heads: 12,
            layers: Layers { query: 1, video: 1 },
            clusters: 32,
            scoring: 128,
            kernel: 5,
            dropout: 0.1,
            measure: Measure::General,
            pairs: PairLimits { min: 0, max: 23 },
            negatives: 3,
            span_weight: 0.01,
            video_weight: 0.05,
            nms: None,
        }
    }
}
