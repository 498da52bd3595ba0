//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, Padding, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EatrConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network.
    pub network: DetrSize,
    /// Layers of the encoder. Default: 3
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 3
    pub decoder_layers: usize,
    /// Slots for events, each of which becomes a proposal. Default: 10
    pub proposals: usize,
    /// How often slots share out the clips. Default: 3
    pub slot_rounds: usize,
    /// What padding does to the events and to the sentence; `leaks` as published. Default: masked
    pub padding: Padding,
    /// Costs of matching proposals and windows.
    pub costs: SetWeights,
    /// Weights of the losses of every decoder layer.
    pub weights: SetWeights,
    /// How much proposals that match nothing count. Default: 0.1
    pub background: f64,
    /// How clip scores are trained.
    pub saliency: SaliencyWeights,
    /// Weight of the losses of events, times those of spans. Default: 3.0
    pub event_weight: f64,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

impl Default for EatrConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 3,
            decoder_layers: 3,
            proposals: 10,
            slot_rounds: 3,
            padding: Padding::Masked,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            background: 0.1,
            saliency: SaliencyWeights::default(),
            event_weight: 3.0,
            round: Rounding::Clips,
        }
    }
}
