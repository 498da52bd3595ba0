//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnmConfig {
    /// Clips that every video is brought to. Default: 200
    pub clips: usize,
    /// One clip in this many is kept for guessing words. Default: 4
    pub keep_every: usize,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 4
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 512
    pub ffn: usize,
    /// Layers of the decoder of clips. Default: 3
    pub clip_layers: usize,
    /// Layers of the decoder of words. Default: 3
    pub word_layers: usize,
    /// The most frequent words that are guessed, padding included; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// How steeply the mask falls. Default: 5.0
    pub alpha: f64,
    /// The widest span, as a fraction of the video. Default: 1.0
    pub max_width: f64,
    /// By how much guessing from the whole video must be worse. Default: 0.1
    pub hard_margin: f64,
    /// By how much guessing from the rest must be worse. Default: 0.15
    pub easy_margin: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for CnmConfig {
    fn default() -> Self {
        Self {
            clips: 200,
            keep_every: 4,
            hidden: 256,
            heads: 4,
            ffn: 512,
            clip_layers: 3,
            word_layers: 3,
            vocabulary: None,
            alpha: 5.0,
            max_width: 1.0,
            hard_margin: 0.1,
            easy_margin: 0.15,
            dropout: 0.1,
        }
    }
}
