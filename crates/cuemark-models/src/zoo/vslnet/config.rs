//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VslNetConfig {
    /// The most clips of a video and words of a query: longer videos are averaged to it. Default: 128
    pub positions: usize,
    /// Width of everything. Default: 128
    pub hidden: usize,
    /// Width of a character's vector; 0 reads words alone. Default: 50
    pub character_width: usize,
    /// Filters that span 1, 2, 3, … characters. Default: 10, 20, 30, 40
    pub character_filters: Vec<usize>,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Convolutions of an encoder. Default: 4
    pub convolutions: usize,
    /// Clips or words that a convolution spans. Default: 7
    pub kernel: usize,
    /// What finds the boundaries. Default: rnn
    pub predictor: PredictorKind,
    /// Whether padding reaches real clips. Default: masked
    pub padding: Padding,
    /// Weight of the highlight loss. Default: 5.0
    pub highlight_weight: f64,
    /// Weight of a highlighted clip in it. Default: 2.0
    pub highlight_positive: f64,
    /// By what share of its length a span is widened to be highlighted, on either side. Default: 0.1
    pub highlight_extend: f64,
    /// Share of values that training drops. Default: 0.2
    pub dropout: f64,
}

impl Default for VslNetConfig {
    fn default() -> Self {
        Self {
            positions: 128,
            hidden: 128,
            character_width: 50,
            character_filters: vec![10, 20, 30, 40],
            heads: 8,
            convolutions: 4,
            kernel: 7,
            predictor: PredictorKind::Rnn,
            padding: Padding::Masked,
            highlight_weight: 5.0,
            highlight_positive: 2.0,
            highlight_extend: 0.1,
            dropout: 0.2,
        }
    }
}

/// What finds the boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorKind {
    /// Two recurrent networks, the second on top of the first.
    Rnn,
    /// One encoder, applied twice.
    Transformer,
}

/// Whether padding reaches real clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// Convolutions see zeros past the end.
    Masked,
    /// Convolutions see whatever stands past the end, as in the published code.
    Leaks,
}
