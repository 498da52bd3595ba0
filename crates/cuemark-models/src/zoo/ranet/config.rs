//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::MapSize;
use crate::losses::ScaledIou;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaNetConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything; even. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Whether clips get a learnt vector for their place, followed by dropout of 0.1. Default: false
    #[serde(default)]
    pub position_embedding: bool,
    /// Clips that each clip is compared with, itself included. Default: 5
    #[serde(default = "neighbours")]
    pub neighbours: usize,
    /// Groups of the graph block's convolutions. Default: 32
    #[serde(default = "groups")]
    pub groups: usize,
    /// Channels of each group. Default: 4
    #[serde(default = "group_width")]
    pub group_width: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Where the backward half of the LSTM begins. Default: padding, as published
    #[serde(default)]
    pub recurrence: Recurrence,
    /// How cells are made from clips. Default: boundary
    #[serde(default)]
    pub choices: Choices,
    /// How cells meet the query. Default: dynamic
    #[serde(default)]
    pub interaction: Interaction,
    /// How cells are compared. Default: one block of attention
    #[serde(default)]
    pub relation: Relation,
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

/// How a cell is made from the clips of its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choices {
    /// Its first clip beside its last. Default.
    #[default]
    Boundary,
    /// The largest value of each channel.
    Pool,
    /// The sum of its first and its last clip.
    BoundarySum,
}

/// How a cell meets the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interaction {
    /// With the sentence and with its words. Default.
    #[default]
    Dynamic,
    /// With the sentence alone.
    Dot,
}

/// How cells are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Relation {
    /// Attention along the row and the column of every cell. Default.
    Attention {
        /// Number of blocks. Default: 1
        #[serde(default = "blocks")]
        blocks: usize,
        /// Rounds of attention in a block, with the same weights. Default: 2
        #[serde(default = "rounds")]
        rounds: usize,
        /// `hidden` over the width inside a block. Default: 4
        #[serde(default = "narrowing")]
        narrowing: usize,
    },
    /// 2D-TAN's masked convolutions.
    Convolution {
        /// Side of the kernel.
        kernel: usize,
        /// Number of convolutions.
        layers: usize,
    },
}

impl Default for Relation {
    fn default() -> Self {
        Self::Attention { blocks: blocks(), rounds: rounds(), narrowing: narrowing() }
    }
}

fn hidden() -> usize {
    512
}

fn neighbours() -> usize {
    5
}

fn groups() -> usize {
    32
}

fn group_width() -> usize {
    4
}

fn lstm_layers() -> usize {
    3
}

fn blocks() -> usize {
    1
}

fn rounds() -> usize {
    2
}

fn narrowing() -> usize {
    4
}

fn nms() -> f64 {
    0.44
}
