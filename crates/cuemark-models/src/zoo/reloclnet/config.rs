//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{EndClip, PairLimits};
use crate::losses::DrawnNegatives;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReLoClNetConfig {
    /// The most clips of a video; longer ones are averaged to them. Default: 128
    pub clips: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of a clip's subtitle features. Default: that of the data; 0, or data without subtitles, reads the video twice
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<usize>,
    /// Whether every clip is told where in its video it begins and ends. Default: false
    pub endpoints: bool,
    /// Width of everything. Default: 384
    pub hidden: usize,
    /// Heads of every attention. Default: 8
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Clips that a filter sees. Default: 5
    pub kernel: usize,
    /// What the number of an end clip stands for. Default: after
    pub end_clip: EndClip,
    /// Clips between start and end of an answer. Default: 2 to 15
    pub pairs: PairLimits,
    /// How videos are told apart. Default: hinge of margin 0.1, the 20 hardest from epoch 20
    pub ranking: DrawnNegatives,
    /// Whether all videos that answer a query count as its own. Default: false
    pub positive_mask: bool,
    /// Weight of the start and end losses. Default: 0.01
    pub span_weight: f64,
    /// Weight of the loss between clips inside and outside the moment. Default: 0.03
    pub frame_weight: f64,
    /// Weight of the loss between videos on the layer between. Default: 0.03
    pub video_weight: f64,
    /// How strongly a video's score counts in its moments'. Default: 30
    pub sharpness: f64,
}

impl Default for ReLoClNetConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            words: 30,
            subtitle: None,
            endpoints: false,
            hidden: 384,
            heads: 8,
            dropout: 0.1,
            kernel: 5,
            end_clip: EndClip::After,
            pairs: PairLimits { min: 2, max: 15 },
            ranking: DrawnNegatives::default(),
            positive_mask: false,
            span_weight: 0.01,
            frame_weight: 0.03,
            video_weight: 0.03,
            sharpness: 30.0,
        }
    }
}
