//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LvtrConfig {
    /// Clips that every video is brought to. Default: 64
    pub clips: usize,
    /// Sentences that are answered together. Default: 4
    pub sentences: usize,
    /// How they stand while training. Default: time
    pub order: Order,
    /// Learned proposals. Default: 40
    pub proposals: usize,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 1024
    pub ffn: usize,
    /// Layers of the encoder. Default: 4
    pub encoder_layers: usize,
    /// Layers of the decoder. Default: 4
    pub decoder_layers: usize,
    /// Layers that bring clips and sentences to the hidden width. Default: 2
    pub input_layers: usize,
    /// What says which sentence a proposal belongs to. Default: cos
    pub label: Label,
    /// What ranks the proposals of a sentence. Default: label
    pub score: Score,
    /// Weight of the distance of centre and width. Default: 1.0
    pub span_weight: f64,
    /// Weight of the overlap. Default: 3.0
    pub overlap_weight: f64,
    /// Weight of the label. Default: 2.0
    pub label_weight: f64,
    /// Weight of a loss of our own on where each sentence looks: over the clips as the encoder leaves them, to those of its moment. 0
    /// leaves it out, as published. Default: 0.0
    pub look_weight: f64,
    /// What the distance counts when proposals are matched to sentences. Default: 1.0
    pub span_cost: f64,
    /// What the overlap counts there. Default: 3.0
    pub overlap_cost: f64,
    /// What the label counts there. Default: 2.0
    pub label_cost: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
    /// Share of input values that training drops. Default: 0.5
    pub input_dropout: f64,
}

impl Default for LvtrConfig {
    fn default() -> Self {
        Self {
            clips: 64,
            sentences: 4,
            order: Order::Time,
            proposals: 40,
            hidden: 256,
            heads: 8,
            ffn: 1024,
            encoder_layers: 4,
            decoder_layers: 4,
            input_layers: 2,
            label: Label::Cos,
            score: Score::Label,
            span_weight: 1.0,
            overlap_weight: 3.0,
            label_weight: 2.0,
            look_weight: 0.0,
            span_cost: 1.0,
            overlap_cost: 3.0,
            label_cost: 2.0,
            dropout: 0.1,
            input_dropout: 0.5,
        }
    }
}

/// How the sentences of a group stand while training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By what comes first in the video, as published: a sentence's place in the group then says where its moment lies, which nobody
    /// knows who asks.
    Time,
    /// As they are drawn.
    Drawn,
}

/// What says which sentence a proposal belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The product with unit sentences, proposals normalised over each other: the published `cos`.
    Cos,
    /// The cosine.
    CosFixed,
    /// The plain product.
    Sim,
    /// A linear layer; proposals without a sentence belong to the last.
    Pred,
}

/// What ranks the proposals of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// How surely the proposal belongs to the sentence.
    Label,
    /// That, times how likely the proposal is to be matched at all: a head of our own.
    Matched,
}
