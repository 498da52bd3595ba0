//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, MaskOrder, Padding, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrDetrConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network.
    pub network: DetrSize,
    /// Layers in which clips look at words, and as many in which clips look at each other. Default: 2
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 2
    pub decoder_layers: usize,
    /// Learned anchors. Default: 10
    pub proposals: usize,
    /// Which words padded clips may not see; `tiled` as published. Default: none
    pub mask_order: MaskOrder,
    /// What padded clips and words do elsewhere; `leaks` as published. Default: masked
    pub padding: Padding,
    /// Costs of matching proposals and windows.
    pub costs: SetWeights,
    /// Weights of the losses of every decoder layer.
    pub weights: SetWeights,
    /// How clip scores are trained.
    pub saliency: SaliencyWeights,
    /// Weight of telling whole videos and sentences apart. Default: 0.3
    pub video_weight: f64,
    /// Weight of telling relevant clips from others by the sentence. Default: 0.5
    pub clip_weight: f64,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

impl Default for TrDetrConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 2,
            decoder_layers: 2,
            proposals: 10,
            mask_order: MaskOrder::None,
            padding: Padding::Masked,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            saliency: SaliencyWeights::default(),
            video_weight: 0.3,
            clip_weight: 0.5,
            round: Rounding::Clips,
        }
    }
}
