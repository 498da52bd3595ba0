//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, MaskOrder, Padding, Rounding};
use crate::losses::SetWeights;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskWeaveConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network.
    pub network: DetrSize,
    /// Layers in which clips look at words. Default: 2
    pub encoder_layers: usize,
    /// Layers that both tasks share. Default: 2
    pub shared_layers: usize,
    /// Layers of the decoder. Default: 2
    pub decoder_layers: usize,
    /// Learned anchors. Default: 10
    pub proposals: usize,
    /// Which task helps the other. Default: highlights-to-moments
    pub feedback: Feedback,
    /// Epochs before one task helps the other. Default: 100
    pub feedback_after: usize,
    /// Which words padded clips may not see; `tiled` as published. Default: none
    pub mask_order: MaskOrder,
    /// What padded clips do elsewhere; `leaks` as published. Default: masked
    pub padding: Padding,
    /// Costs of matching proposals and windows. The losses themselves are not weighted.
    pub costs: SetWeights,
    /// How much proposals that match nothing count. Default: 0.1
    pub background: f64,
    /// By how much a good clip must beat a bad one. Default: 0.2
    pub margin: f64,
    /// Weight of highlights against moments, before the learned ones. Default: 2.0
    pub highlight_weight: f64,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

/// Which task helps the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Salient clips count double when moments are looked for. Default.
    #[default]
    HighlightsToMoments,
    /// Clips that many proposals cover are more salient.
    MomentsToHighlights,
}

impl Default for TaskWeaveConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 2,
            shared_layers: 2,
            decoder_layers: 2,
            proposals: 10,
            feedback: Feedback::HighlightsToMoments,
            feedback_after: 100,
            mask_order: MaskOrder::None,
            padding: Padding::Masked,
            costs: SetWeights::default(),
            background: 0.1,
            margin: 0.2,
            highlight_weight: 2.0,
            round: Rounding::Clips,
        }
    }
}
