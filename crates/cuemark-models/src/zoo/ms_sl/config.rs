//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MsSlConfig {
    /// Pieces that a video is averaged to for pooled clips. Default: 32
    pub pieces: usize,
    /// The most frames of a video; longer ones are averaged to them. Default: 128
    pub frames: usize,
    /// The most words of a query; later ones are cut off. Default: 30
    pub words: usize,
    /// Width of everything. Default: 384
    pub hidden: usize,
    /// Heads of every attention. Default: 4
    pub heads: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// How videos are told apart. Default: hinge of margin 0.2, the 20 hardest from epoch 20
    pub ranking: Ranking,
    /// Weight of the contrast between pooled clips. Default: 0.02
    pub clip_contrast: f64,
    /// Weight of the contrast between attended frames. Default: 0.04
    pub frame_contrast: f64,
    /// Whether two sentences of one video are spared as each other's negatives on frames, where the published code takes
    /// them. Default: false
    pub spare_same_video: bool,
    /// Share of the pooled clips in a video's score; the rest is that of the frames. Default: 0.7
    pub clip_share: f64,
}

/// How videos are told apart.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ranking {
    /// How much better the true pair must score. Default: 0.2
    pub margin: f64,
    /// The epoch from which only the hardest are drawn. Default: 20
    pub hard_from: usize,
    /// How many the hardest are. Default: 20
    pub hard_pool: usize,
}

impl Default for Ranking {
    fn default() -> Self {
        Self { margin: 0.2, hard_from: 20, hard_pool: 20 }
    }
}

impl Default for MsSlConfig {
    fn default() -> Self {
        Self {
            pieces: 32,
            frames: 128,
            words: 30,
            hidden: 384,
            heads: 4,
            dropout: 0.1,
            ranking: Ranking::default(),
            clip_contrast: 0.02,
            frame_contrast: 0.04,
            spare_same_video: false,
            clip_share: 0.7,
        }
    }
}
