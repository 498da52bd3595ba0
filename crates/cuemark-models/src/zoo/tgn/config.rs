//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use super::CARD;
use crate::layers::PaddedWords;
use crate::{ModelError, Result};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TgnConfig {
    /// Lengths of the candidate spans, in clips.
    pub anchors: Lengths,
    /// The most clips that are read of a video; what lies after them is out of reach. Default: 1024
    #[serde(default = "clips")]
    pub clips: usize,
    /// Clips of the random stretch that is read of a longer video while training.
    pub window: usize,
    /// Width of all states. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the attention. Default: 512
    #[serde(default = "hidden")]
    pub attention: usize,
    /// Which ways the query is read. Default: forward
    #[serde(default)]
    pub sentence: SentenceWays,
    /// Whether attention sees padded words. Default: masked
    #[serde(default)]
    pub padded_words: PaddedWords,
    /// A candidate with more overlap is a positive. Default: 0.7
    #[serde(default = "positive_iou")]
    pub positive_iou: f64,
    /// A candidate with less overlap is a negative. Default: 0.3
    #[serde(default = "negative_iou")]
    pub negative_iou: f64,
    /// What the candidates between the two are. Default: ignored
    #[serde(default)]
    pub between: Between,
    /// Weight of a positive, one per anchor. Default: negatives over positives of the batch, at most 100
    #[serde(default)]
    pub positive_weights: Vec<f64>,
    /// Share of values dropped from the inputs of every cell and from the query's states. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.55
    #[serde(default = "nms")]
    pub nms: f64,
}

/// Lengths of anchors in clips, as run files state them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lengths {
    /// These.
    List(Vec<usize>),
    /// Every length from `first` to `last`.
    Range {
        /// The shortest.
        first: usize,
        /// The longest.
        last: usize,
    },
}

/// Which ways the query is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentenceWays {
    /// Left to right. Default.
    #[default]
    Forward,
    /// Both ways, the states side by side: twice as wide.
    Both,
}

/// What candidates are whose overlap is neither high nor low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Left out of the loss. Default.
    #[default]
    Ignored,
    /// Negatives.
    Negative,
}

impl Lengths {
    pub(super) fn list(&self) -> Result<Vec<usize>> {
        let lengths: Vec<usize> = match self {
            Self::List(lengths) => lengths.clone(),
            Self::Range { first, last } => (*first..=*last).take(MAX_ANCHORS + 1).collect(),
        };
        if lengths.is_empty() || lengths.len() > MAX_ANCHORS || lengths.contains(&0) {
            let problem = format!("`anchors` must be 1 to {MAX_ANCHORS} lengths of at least one clip");
            return Err(ModelError::Settings { model: CARD.name, problem });
        }
        Ok(lengths)
    }
}

fn clips() -> usize {
    1024
}

fn hidden() -> usize {
    512
}

fn positive_iou() -> f64 {
    0.7
}

fn negative_iou() -> f64 {
    0.3
}

fn dropout() -> f64 {
    0.5
}

pub(super) fn nms() -> f64 {
    0.55
}

/// More lengths than any video has clips.
const MAX_ANCHORS: usize = 4096;
