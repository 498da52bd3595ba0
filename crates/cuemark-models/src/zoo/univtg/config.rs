//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, Padding, Rounding};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UniVtgConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network; `dropout` is the chance that training drops a whole branch. Default: 1024 wide
    pub network: DetrSize,
    /// Layers of the encoder. Default: 4
    pub encoder_layers: usize,
    /// What padded clips do to their neighbours; `leaks` as published. Default: masked
    pub padding: Padding,
    /// Weight of the distance of boundaries. Default: 10.0
    pub boundary_weight: f64,
    /// Weight of the overlap. Default: 1.0
    pub overlap_weight: f64,
    /// Weight of telling clips inside a window from others. Default: 10.0
    pub inside_weight: f64,
    /// Weight of telling good clips from worse ones of the same video. Default: 0.05
    pub intra_weight: f64,
    /// Weight of telling good clips from those of other videos. Default: 0.01
    pub inter_weight: f64,
    /// How much clips outside every window count. Default: 0.1
    pub background: f64,
    /// What a clip's score is. Default: add
    pub score: ClipScore,
    /// Answers that overlap a better one more than this are dropped. Default: 0.7
    pub nms: f64,
    /// Where the ends of an answer may lie. Default: none
    pub round: Rounding,
}

/// What a clip's score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipScore {
    /// How like the query it is, and how surely inside a window. Default.
    #[default]
    Add,
    /// How like the query it is.
    Saliency,
}

impl Default for UniVtgConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize { hidden: 1024, ..DetrSize::default() },
            encoder_layers: 4,
            padding: Padding::Masked,
            boundary_weight: 10.0,
            overlap_weight: 1.0,
            inside_weight: 10.0,
            intra_weight: 0.05,
            inter_weight: 0.01,
            background: 0.1,
            score: ClipScore::Add,
            nms: 0.7,
            round: Rounding::None,
        }
    }
}
