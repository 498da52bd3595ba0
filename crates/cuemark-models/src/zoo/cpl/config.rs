//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CplConfig {
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
    /// Gaussians per query. Default: 8
    pub proposals: usize,
    /// A Gaussian's deviation is its width divided by this. Default: 9.0
    pub sigma: f64,
    /// Power with which negatives grow over the epochs; 0 for full size at once. Default: 0.5
    pub gamma: f64,
    /// The epoch at which they are full-sized. Default: 30
    pub full_epoch: usize,
    /// Overlap that masks should have with themselves. Default: 0.146
    pub lambda: f64,
    /// By how much guessing from the whole video must be worse. Default: 0.1
    pub whole_margin: f64,
    /// By how much guessing from either side must be worse. Default: 0.15
    pub side_margin: f64,
    /// Weight of the margins. Default: 1.0
    pub rank_weight: f64,
    /// Weight of the diversity of masks. Default: 5.0
    pub diversity_weight: f64,
    /// How proposals are ranked. Default: loss
    pub answer: Ranking,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for CplConfig {
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
            proposals: 8,
            sigma: 9.0,
            gamma: 0.5,
            full_epoch: 30,
            lambda: 0.146,
            whole_margin: 0.1,
            side_margin: 0.15,
            rank_weight: 1.0,
            diversity_weight: 5.0,
            answer: Ranking::Loss,
            dropout: 0.1,
        }
    }
}

/// How proposals are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// By how well words are guessed from each.
    Loss,
    /// By how much each overlaps the others.
    Vote,
    /// By how much each overlaps the others, each counted by its own overlap with the one words are guessed from best.
    WeightedVote,
}
