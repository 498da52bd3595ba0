//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{EndClip, PairLimits};
use crate::losses::DrawnNegatives;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct XmlConfig {
    /// The most clips of a video; later ones are cut off. Default: 100
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, leaves the video alone
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Whether every clip is told where in its video it begins and ends. Default: false
    pub endpoints: bool,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of every attention. Default: 4
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Clips that a filter sees. Default: 5
    pub kernel: usize,
    /// What the number of an end clip stands for. Default: last
    pub end_clip: EndClip,
    /// Clips between start and end of an answer. Default: 2 to 15
    pub pairs: PairLimits,
    /// How videos are told apart. Default: hinge of margin 0.1, the 20 hardest from epoch 20
    pub ranking: DrawnNegatives,
    /// Whether all videos that answer a query are kept out of its negatives. Default: false
    pub positive_mask: bool,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// How strongly a video's score counts in its moments'. Default: 20
    pub sharpness: f64,
}

impl Default for XmlConfig {
    fn default() -> Self {
        Self {
            clips: 100,
            words: 30,
            subtitle: None,
            endpoints: false,
            hidden: 256,
            heads: 4,
            dropout: 0.1,
            kernel: 5,
            end_clip: EndClip::Last,
            pairs: PairLimits { min: 2, max: 15 },
            ranking: DrawnNegatives::default(),
            positive_mask: false,
            span_weight: 0.01,
            sharpness: 20.0,
        }
    }
}
