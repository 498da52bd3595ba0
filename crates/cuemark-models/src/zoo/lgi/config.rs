//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::WordSource;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LgiConfig {
    /// The most clips of a video; longer ones are averaged to so many. Default: 128
    pub clips: usize,
    /// Width of clips and everything after them. Default: 512
    pub hidden: usize,
    /// Width of the query's states, both ways together. Default: 512
    pub query: usize,
    /// Width of the regression's hidden layer. Default: 512
    pub head: usize,
    /// Widths of the attentions. Default: 256 each
    pub attention: AttentionWidths,
    /// Layers of the query's LSTM. Default: 2
    pub lstm_layers: usize,
    /// Phrases taken from a query. Default: 3
    pub phrases: usize,
    /// Length of the local convolutions; odd. Default: 15
    pub kernel: usize,
    /// Local blocks per phrase. Default: 1
    pub local_blocks: usize,
    /// Global blocks. Default: 2
    pub blocks: usize,
    /// Heads of a global block. Default: 4
    pub heads: usize,
    /// What bounds start and end. Default: sigmoid
    pub output: Output,
    /// How much of itself a phrase's attention may keep to few words; λ of the paper. Default: 0.3
    pub spread: f64,
    /// Weight of the temporal attention's loss. Default: 1.0
    pub attention_weight: f64,
    /// Weight of the phrases' loss. Default: 1.0
    pub phrase_weight: f64,
    /// Share of values dropped. Default: 0.5
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    pub word_vectors: WordSource,
    /// Whether padded clips reach the convolutions. Default: masked
    pub padded_clips: PaddedClips,
}

impl Default for LgiConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            hidden: 512,
            query: 512,
            head: 512,
            attention: AttentionWidths::default(),
            lstm_layers: 2,
            phrases: 3,
            kernel: 15,
            local_blocks: 1,
            blocks: 2,
            heads: 4,
            output: Output::default(),
            spread: 0.3,
            attention_weight: 1.0,
            phrase_weight: 1.0,
            dropout: 0.5,
            word_vectors: WordSource::default(),
            padded_clips: PaddedClips::default(),
        }
    }
}

/// Widths of the attentions' hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionWidths {
    /// Over words. Default: 256
    pub words: usize,
    /// Over phrases. Default: 256
    pub phrases: usize,
    /// Over clips. Default: 256
    pub clips: usize,
}

impl Default for AttentionWidths {
    fn default() -> Self {
        Self { words: 256, phrases: 256, clips: 256 }
    }
}

/// What bounds the two numbers of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Both below by 0 and above by 1. Default.
    #[default]
    Sigmoid,
    /// Below by 0 alone: the published choice for Charades-STA.
    Relu,
}

/// What convolutions see where a video has no more clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddedClips {
    /// Zeros: answers do not depend on the other videos of a batch. Default.
    #[default]
    Masked,
    /// As the published code has it: whatever the layers before make of padding.
    Published,
}
