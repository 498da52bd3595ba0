//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::MapSize;
use crate::losses::ScaledIou;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MgpnConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything; even. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Whether clips get a learnt vector for their place, followed by dropout. Default: false
    #[serde(default)]
    pub position_embedding: bool,
    /// Layers of the GRUs over clips and over words. Default: 2
    #[serde(default = "gru_layers")]
    pub gru_layers: usize,
    /// Where the backward half of the word GRU begins. Default: padding, as published
    #[serde(default)]
    pub recurrence: Recurrence,
    /// Dropout on placed clips and in the feed-forward layer. Default: 0.1
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Number of convolutions that compare spans. Default: 4
    #[serde(default = "blocks")]
    pub blocks: usize,
    /// Side of their kernel. Default: 7
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Groups of their channels; divides `hidden`. Default: 32
    #[serde(default = "groups")]
    pub groups: usize,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.44
    #[serde(default = "nms")]
    pub nms: f64,
}

/// Where the half of a recurrence that reads backwards begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recurrence {
    /// At the end of the padded batch, as published. Default.
    #[default]
    Padding,
    /// At each query's last word.
    LengthAware,
}

fn hidden() -> usize {
    256
}

fn gru_layers() -> usize {
    2
}

fn dropout() -> f64 {
    0.1
}

fn blocks() -> usize {
    4
}

fn kernel() -> usize {
    7
}

fn groups() -> usize {
    32
}

fn nms() -> f64 {
    0.44
}
