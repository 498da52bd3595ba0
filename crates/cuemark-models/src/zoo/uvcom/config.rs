//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, MaskOrder, Padding, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UvcomConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network.
    pub network: DetrSize,
    /// Layers of either look at the other side, and of the encoder. Default: 3
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 3
    pub decoder_layers: usize,
    /// Learned anchors. Default: 30
    pub proposals: usize,
    /// Width inside the feed-forward parts of slots and similarities. Default: 1024
    pub mlp: usize,
    /// Centres that words are summed up in. Default: 5
    pub word_centres: usize,
    /// Centres that clips are summed up in. Default: 30
    pub clip_centres: usize,
    /// How often centres are moved. Default: 5
    pub centre_rounds: usize,
    /// How the walk from words to clips ends; `series` in checkpoints of the library lighthouse. Default: inverse
    pub walk: Walk,
    /// Which steps padded ones may not see; `tiled` as published. Default: none
    pub mask_order: MaskOrder,
    /// What padded clips and words do elsewhere; `leaks` as published. Default: masked
    pub padding: Padding,
    /// The epoch, from 0, from which on the wrong text is the least like one of the batch, not the next. Default: 80
    pub hard_negatives_from: usize,
    /// Costs of matching proposals and windows.
    pub costs: SetWeights,
    /// Weights of the losses of every decoder layer.
    pub weights: SetWeights,
    /// How much proposals that match nothing count. Default: 0.1
    pub background: f64,
    /// How clip scores are trained.
    pub saliency: SaliencyWeights,
    /// Weight of aligning videos, clips and sentences. Default: 1.0
    pub align_weight: f64,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

/// How a random walk ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Walk {
    /// After any number of steps: by the inverse of a matrix. Default.
    #[default]
    Inverse,
    /// By the matrix itself, as a library has it by mistake.
    Series,
}

impl Default for UvcomConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 3,
            decoder_layers: 3,
            proposals: 30,
            mlp: 1024,
            word_centres: 5,
            clip_centres: 30,
            centre_rounds: 5,
            walk: Walk::Inverse,
            mask_order: MaskOrder::None,
            padding: Padding::Masked,
            hard_negatives_from: 80,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            background: 0.1,
            saliency: SaliencyWeights::default(),
            align_weight: 1.0,
            round: Rounding::Clips,
        }
    }
}
