//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WsslConfig {
    /// The most clips of a video; longer ones are averaged to it. Default: 256
    pub clips: usize,
    /// Width of the recurrent networks. Default: 512
    pub hidden: usize,
    /// Layers of each. Default: 2
    pub layers: usize,
    /// Width of a word's vector in the localiser. Default: 512
    pub localiser_words: usize,
    /// Width of a word's vector in the captioner. Default: 512
    pub captioner_words: usize,
    /// The most frequent words that are known; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// How far an anchor can be moved, as a fraction of the video. Default: 0.3
    pub reach: f64,
    /// How sharply a span ends for the captioner, per clip. Default: 0.1
    pub sharpness: f64,
    /// Noise on the span sent to the captioner, either way. Default: 0.01
    pub noise: f64,
    /// Weight of finding the same span again. Default: 0.01
    pub cycle_weight: f64,
    /// Every so many epochs of stage 1 train the choice of anchors. Default: 5
    pub localise_every: usize,
    /// Share of values that training drops. Default: 0.3
    pub dropout: f64,
}

impl Default for WsslConfig {
    fn default() -> Self {
        Self {
            clips: 256,
            hidden: 512,
            layers: 2,
            localiser_words: 512,
            captioner_words: 512,
            vocabulary: None,
            reach: 0.3,
            sharpness: 0.1,
            noise: 0.01,
            cycle_weight: 0.01,
            localise_every: 5,
            dropout: 0.3,
        }
    }
}
