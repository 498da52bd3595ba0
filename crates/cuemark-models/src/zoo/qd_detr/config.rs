//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, MaskOrder, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QdDetrConfig {
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
    /// Costs of matching proposals and windows.
    pub costs: SetWeights,
    /// Weights of the losses of every decoder layer.
    pub weights: SetWeights,
    /// How much proposals that match nothing count. Default: 0.1
    pub background: f64,
    /// How clip scores are trained.
    pub saliency: SaliencyWeights,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

impl Default for QdDetrConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 2,
            decoder_layers: 2,
            proposals: 10,
            mask_order: MaskOrder::None,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            background: 0.1,
            saliency: SaliencyWeights::default(),
            round: Rounding::Clips,
        }
    }
}
