//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::detr::{DetrSize, MaskOrder, Rounding};
use crate::losses::{SaliencyWeights, SetWeights};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CgDetrConfig {
    /// The most clips of a video that are seen at once. Default: 75
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 32
    pub words: usize,
    /// Sizes of the network; branches are dropped whole.
    pub network: DetrSize,
    /// Layers of the encoder. Default: 3
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 3
    pub decoder_layers: usize,
    /// Layers in which clips look at dummies and words. Default: 2
    pub text_layers: usize,
    /// Layers that make the token of the moment. Default: 1
    pub moment_layers: usize,
    /// Layers in which dummies look at the words. Default: 2
    pub dummy_layers: usize,
    /// Layers that make the token of the sentence. Default: 1
    pub sentence_layers: usize,
    /// Heads of the layers that only words and dummies pass. Default: 8
    pub text_heads: usize,
    /// Dummy tokens that take the attention of clips the query is not about. Default: 45
    pub dummies: usize,
    /// Prompts that the token of saliency is made of. Default: 10
    pub prompts: usize,
    /// How many of them each video uses. Default: 1
    pub used_prompts: usize,
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
    /// Weight of the same losses on the attention that clips pay to words, within those of saliency. Default: 1.0
    pub attention_weight: f64,
    /// Weight of aligning moments and sentences. Default: 1.0
    pub align_weight: f64,
    /// Weight of teaching the attention, and of keeping dummies and prompts apart. Default: 1.0
    pub distill_weight: f64,
    /// Where the ends of an answer may lie. Default: clips
    pub round: Rounding,
}

impl Default for CgDetrConfig {
    fn default() -> Self {
        Self {
            clips: 75,
            words: 32,
            network: DetrSize::default(),
            encoder_layers: 3,
            decoder_layers: 3,
            text_layers: 2,
            moment_layers: 1,
            dummy_layers: 2,
            sentence_layers: 1,
            text_heads: 8,
            dummies: 45,
            prompts: 10,
            used_prompts: 1,
            proposals: 10,
            mask_order: MaskOrder::None,
            costs: SetWeights::default(),
            weights: SetWeights::default(),
            background: 0.1,
            saliency: SaliencyWeights::default(),
            attention_weight: 1.0,
            align_weight: 1.0,
            distill_weight: 1.0,
            round: Rounding::Clips,
        }
    }
}
