//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::WordSource;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScdmConfig {
    /// Positions of the grid; longer videos are averaged to so many, shorter ones end in zeros.
    pub grid: usize,
    /// Anchor maps; the first has a quarter of the grid's positions, each other half of the one before.
    pub maps: usize,
    /// Width of the sentence's units, each way, and of the attention. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Channels of the convolutions. Default: 512
    #[serde(default = "channels")]
    pub channels: usize,
    /// Channels inside a prediction branch. Default: 64
    #[serde(default = "branch")]
    pub branch: usize,
    /// Length of the first convolution and of the first block's. Default: 3
    #[serde(default = "first_kernel")]
    pub first_kernel: usize,
    /// Leading blocks that read the sentence's mean instead of attending to words. Default: 0
    #[serde(default)]
    pub sentence_blocks: usize,
    /// Widths of anchors as shares of a map's cell. Default: 0.25, 0.5, 0.75, 1
    #[serde(default = "ratios")]
    pub ratios: Vec<f64>,
    /// Anchors no wider than this are left out, in positions. Default: 0
    #[serde(default)]
    pub min_anchor: f64,
    /// Anchors at least so wide are left out, in positions. Default: none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_anchor: Option<f64>,
    /// Anchors with more overlap are positives. Default: 0.5
    #[serde(default = "positive_iou")]
    pub positive_iou: f64,
    /// Anchors with less overlap are negatives. Default: 0.3
    #[serde(default = "negative_iou")]
    pub negative_iou: f64,
    /// Negatives with a higher logit are hard. Default: 2.0
    #[serde(default = "hard_logit")]
    pub hard_logit: f64,
    /// How far offsets reach, as a share of the anchor's width. Default: 0.1
    #[serde(default = "offset_scale")]
    pub offset_scale: OffsetScale,
    /// Weights of the losses.
    #[serde(default)]
    pub weights: Weights,
    /// What is added to the variance that a block divides by. Default: 1e-6
    #[serde(default = "modulation_eps")]
    pub modulation_eps: f64,
    /// The same in the prediction branches' batch norms. Default: 1e-3
    #[serde(default = "batch_norm_eps")]
    pub batch_norm_eps: f64,
    /// Share of the sentence's states dropped. Default: 0.2
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
    /// Overlap above which the worse of two answers is dropped. Default: 0.7
    #[serde(default = "nms")]
    pub nms: f64,
}

/// How far an offset of 1 moves an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffsetScale {
    /// Its centre, as a share of its width.
    pub centre: f64,
    /// The logarithm of its width.
    pub width: f64,
}

/// Weights of the losses of every map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Scores of positives. Default: 100
    pub positive: f64,
    /// Scores of hard negatives. Default: 50
    pub hard: f64,
    /// Scores of other negatives. Default: 50
    pub easy: f64,
    /// Centres of positives. Default: 50
    pub centre: f64,
    /// Widths of positives. Default: 20
    pub width: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { positive: 100.0, hard: 50.0, easy: 50.0, centre: 50.0, width: 20.0 }
    }
}

fn hidden() -> usize {
    256
}

fn channels() -> usize {
    512
}

fn branch() -> usize {
    64
}

fn first_kernel() -> usize {
    3
}

fn ratios() -> Vec<f64> {
    vec![0.25, 0.5, 0.75, 1.0]
}

fn positive_iou() -> f64 {
    0.5
}

fn negative_iou() -> f64 {
    0.3
}

fn hard_logit() -> f64 {
    2.0
}

fn offset_scale() -> OffsetScale {
    OffsetScale { centre: 0.1, width: 0.1 }
}

fn dropout() -> f64 {
    0.2
}

pub(super) fn nms() -> f64 {
    0.7
}

fn modulation_eps() -> f64 {
    1e-6
}

/// TensorFlow's default.
fn batch_norm_eps() -> f64 {
    1e-3
}
