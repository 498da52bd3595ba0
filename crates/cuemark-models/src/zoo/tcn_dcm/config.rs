//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::MapSize;
use crate::losses::ScaledIou;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcnDcmConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "three")]
    pub lstm_layers: usize,
    /// Heads of the attention over locations; divides `hidden`. Default: 4
    #[serde(default = "heads")]
    pub heads: usize,
    /// Dropout on the weights of that attention. Default: 0.1
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Share of a span's own location in what the attention gives. Default: 1.0
    #[serde(default = "one")]
    pub eta: f64,
    /// Side of the convolutions' kernel. Default: 5
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Number of convolutions. Default: 3
    #[serde(default = "three")]
    pub layers: usize,
    /// Weight of the loss on another video, where nothing answers; 0 needs no other video. Default: 1.0
    #[serde(default = "one")]
    pub gamma: f64,
    /// Weight of the distance between location part and position code. Default: 1.0
    #[serde(default = "one")]
    pub sigma: f64,
    /// Weight of the distance correlation of content and location. Default: 0.001
    #[serde(default = "lambda")]
    pub lambda: f64,
    /// Weight of the norms of content and location. Default: 1e-5
    #[serde(default = "frobenius")]
    pub frobenius: f64,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

fn hidden() -> usize {
    512
}

fn three() -> usize {
    3
}

fn heads() -> usize {
    4
}

fn dropout() -> f64 {
    0.1
}

fn one() -> f64 {
    1.0
}

fn kernel() -> usize {
    5
}

fn lambda() -> f64 {
    0.001
}

fn frobenius() -> f64 {
    1e-5
}

pub(super) fn nms() -> f64 {
    0.45
}
