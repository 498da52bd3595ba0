//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MomentDetrConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network.
    pub network: DetrSize,
    /// Layers of the encoder. Default: 2
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 2
    pub decoder_layers: usize,
    /// Learned proposals. Default: 10
    pub proposals: usize,
    /// Costs of matching proposals and windows.
    pub costs: SetWeights,
    /// Weights of the losses of every decoder layer.
    pub weights: SetWeights,
    /// How much proposals that match nothing count. Default: 0.1
    pub background: f64,
    /// How clip scores are trained.
    pub saliency: SaliencyWeights,
    /// Draws matched proposals and their words together; left out in the published runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Alignment>,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

/// The optional loss that draws matched proposals and words together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Alignment {
    /// Width of the joint space. Default: 64
    pub width: usize,
    /// Divides similarities. Default: 0.07
    pub temperature: f64,
    /// Weight of the loss. Default: 0.02
    pub weight: f64,
}

impl Default for Alignment {
    fn default() -> Self {
        Self { width: 64, temperature: 0.07, weight: 0.02 }
    }
}

impl Default for MomentDetrConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 2,
            decoder_layers: 2,
            proposals: 10,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            background: 0.1,
            saliency: SaliencyWeights::default(),
            align: None,
            round: Rounding::Clips,
        }
    }
}
