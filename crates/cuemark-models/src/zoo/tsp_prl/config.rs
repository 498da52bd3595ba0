//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TspPrlConfig {
    /// The most units of a video; longer ones are averaged to them. Default: 256
    pub units: usize,
    /// Units that stand for a window. Default: 10
    pub window_units: usize,
    /// Width of the state. Default: 1024
    pub hidden: usize,
    /// Widths of the alignment head. Default: 256 and 128
    pub align_hidden: [usize; 2],
    /// Steps of an episode. Default: 20
    pub steps: usize,
    /// What a reward loses per step it lies ahead. Default: 0.4
    pub discount: f64,
    /// Weight of the policies' entropy. Default: 0.1
    pub entropy_weight: f64,
}

impl Default for TspPrlConfig {
    fn default() -> Self {
        Self {
            units: 256,
            window_units: 10,
            hidden: 1024,
            align_hidden: [256, 128],
            steps: 20,
            discount: 0.4,
            entropy_weight: 0.1,
        }
    }
}
