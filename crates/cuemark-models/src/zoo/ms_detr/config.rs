//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MsDetrConfig {
    /// Clips that every video is brought to; halved twice. Default: 128
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 100
    pub words: usize,
    /// Width of everything. Default: 512
    pub hidden: usize,
    /// Heads of the attention. Default: 16
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 512
    pub ffn: usize,
    /// For every encoder layer, how much fewer clips are looked at than there are. Default: 4, 2, 1, 1, 1
    pub reduce: Vec<usize>,
    /// For every encoder layer, whether the clips are halved before it. Default: yes, yes, no, no, no
    pub halve: Vec<bool>,
    /// The encoder layers whose inputs are the levels of the pyramid. Default: 0, 1, 4
    pub levels: Vec<usize>,
    /// Layers of the decoder. Default: 3
    pub decoder_layers: usize,
    /// Learned proposals. Default: 300
    pub proposals: usize,
    /// Pieces that a proposal is cut into on every level. Default: 4
    pub pieces: usize,
    /// What the head that guesses hidden words reads. Default: embedded
    pub word_head: WordHead,
    /// The most frequent words that are guessed; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Share of words hidden while training. Default: 0.15
    pub hide: f64,
    /// How many of the nearest proposals are right and drawn to the span. Default: 1
    pub best: usize,
    /// Overlap below which any other proposal is wrong. Default: 0.7
    pub min_iou: f64,
    /// Weight of every decoder layer. Default: 0.1, 0.5, 5.0
    pub layer_weights: Vec<f64>,
    /// Weight of the scores within a layer. Default: 5.0
    pub score_weight: f64,
    /// Weight of the distance within a layer. Default: 1.0
    pub distance_weight: f64,
    /// Weight of telling clips inside the span from those outside. Default: 5.0
    pub inside_weight: f64,
    /// Weight of guessing hidden words. Default: 0.5
    pub word_weight: f64,
    /// How little easy examples count. Default: 2.0
    pub focus: f64,
    /// Weight of right proposals among scores. Default: 0.25
    pub score_balance: f64,
    /// Weight of clips inside the span. Default: 0.5
    pub inside_balance: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for MsDetrConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            words: 100,
            hidden: 512,
            heads: 16,
            ffn: 512,
            reduce: vec![4, 2, 1, 1, 1],
            halve: vec![true, true, false, false, false],
            levels: vec![0, 1, 4],
            decoder_layers: 3,
            proposals: 300,
            pieces: 4,
            word_head: WordHead::Embedded,
            vocabulary: None,
            hide: 0.15,
            best: 1,
            min_iou: 0.7,
            layer_weights: vec![0.1, 0.5, 5.0],
            score_weight: 5.0,
            distance_weight: 1.0,
            inside_weight: 5.0,
            word_weight: 0.5,
            focus: 2.0,
            score_balance: 0.25,
            inside_balance: 0.5,
            dropout: 0.1,
        }
    }
}

/// What the head that guesses hidden words reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordHead {
    /// Words before they have seen the video, as in the published code.
    Embedded,
    /// Words as they leave the encoder.
    Encoded,
}
