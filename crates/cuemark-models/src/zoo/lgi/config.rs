//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::WordSource;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LgiConfig {
    /// The most clips of a video; longer ones are averaged to so many. Default: 128
    #[serde(default = "clips")]
    pub clips: usize,
    /// Width of clips and everything after them. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the query's states, both ways together. Default: 512
    #[serde(default = "hidden")]
    pub query: usize,
    /// Width of the regression's hidden layer. Default: 512
    #[serde(default = "hidden")]
    pub head: usize,
    /// Widths of the attentions. Default: 256 each
    #[serde(default)]
    pub attention: AttentionWidths,
    /// Layers of the query's LSTM. Default: 2
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Phrases taken from a query. Default: 3
    #[serde(default = "phrases")]
    pub phrases: usize,
    /// Length of the local convolutions; odd. Default: 15
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Local blocks per phrase. Default: 1
    #[serde(default = "local_blocks")]
    pub local_blocks: usize,
    /// Global blocks. Default: 2
    #[serde(default = "blocks")]
    pub blocks: usize,
    /// Heads of a global block. Default: 4
    #[serde(default = "heads")]
    pub heads: usize,
    /// What bounds start and end. Default: sigmoid
    #[serde(default)]
    pub output: Output,
    /// How much of itself a phrase's attention may keep to few words; λ of the paper. Default: 0.3
    #[serde(default = "spread")]
    pub spread: f64,
    /// Weight of the temporal attention's loss. Default: 1.0
    #[serde(default = "one")]
    pub attention_weight: f64,
    /// Weight of the phrases' loss. Default: 1.0
    #[serde(default = "one")]
    pub phrase_weight: f64,
    /// Share of values dropped. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
    /// Whether padded clips reach the convolutions. Default: masked
    #[serde(default)]
    pub padded_clips: PaddedClips,
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

fn clips() -> usize {
    128
}

fn hidden() -> usize {
    512
}

fn lstm_layers() -> usize {
    2
}

fn phrases() -> usize {
    3
}

fn kernel() -> usize {
    15
}

fn local_blocks() -> usize {
    1
}

fn blocks() -> usize {
    2
}

fn heads() -> usize {
    4
}

fn spread() -> f64 {
    0.3
}

fn one() -> f64 {
    1.0
}

fn dropout() -> f64 {
    0.5
}
