//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::{MapSize, MapSupport};
use crate::losses::ScaledIou;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MddConfig {
    /// Sizes of the map.
    pub map: MapSize,
    /// Width of everything. Default: 512
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Layers of the query's LSTM. Default: 3
    #[serde(default = "lstm_layers")]
    pub lstm_layers: usize,
    /// Whether verbs and nouns gate the query; needs parses. Default: true
    #[serde(default = "yes")]
    pub semantic_roles: bool,
    /// Weight of the position reconstruction; 0 leaves that part out. Default: 1.0
    #[serde(default = "one")]
    pub reconstruction: f64,
    /// The branches whose product is added to the map; repeats are branches of their own, none leaves that part out.
    /// Default: location, unobserved, unobserved
    #[serde(default = "confounders")]
    pub confounders: Vec<Confounder>,
    /// What each branch is before the product. Default: plain, as published
    #[serde(default)]
    pub branches: Branches,
    /// Vectors in each unobserved dictionary: one number for all, or a list with one for each. Default: 80
    #[serde(default)]
    pub unobserved: Entries,
    /// Most verbs in an action dictionary. Default: 80
    #[serde(default = "entries")]
    pub actions: usize,
    /// Heads of every branch; divides `hidden`. Default: 4
    #[serde(default = "four")]
    pub heads: usize,
    /// Side of the convolutions' kernel. Default: 5
    #[serde(default = "kernel")]
    pub kernel: usize,
    /// Number of convolutions. Default: 4
    #[serde(default = "four")]
    pub layers: usize,
    /// Which cells the convolutions compute. Default: exact
    #[serde(default)]
    pub support: MapSupport,
    /// How overlaps become targets. Default: 0 up to 0.5, 1 at 1.0
    #[serde(default)]
    pub targets: ScaledIou,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    #[serde(default = "nms")]
    pub nms: f64,
}

/// What a branch is before it is multiplied with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Branches {
    /// What attention gives, as published: at the start each branch is a mean of many vectors, and their product is a
    /// thousandth of the map that it is added to.
    #[default]
    Plain,
    /// Scaled to a mean square of 1 over its channels, so that the product is as large as the map. Ours, not the paper's.
    Normalised,
}

/// How many vectors the dictionaries of one kind have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entries {
    /// All the same.
    Each(usize),
    /// One number for each, in order.
    List(Vec<usize>),
}

impl Default for Entries {
    fn default() -> Self {
        Self::Each(entries())
    }
}

impl Entries {
    /// Vectors of dictionary `number`, from 0; `None` when the list ends before it.
    pub(super) fn of(&self, number: usize) -> Option<usize> {
        match self {
            Self::Each(entries) => Some(*entries),
            Self::List(list) => list.get(number).copied(),
        }
    }
}

/// What may lie behind both the moment and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confounder {
    /// Where spans lie: the position codes of all squares of the map.
    Location,
    /// What is done: vectors of the most frequent verbs of the training queries.
    Action,
    /// Anything else: learnt vectors.
    Unobserved,
}

fn hidden() -> usize {
    512
}

fn lstm_layers() -> usize {
    3
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

fn confounders() -> Vec<Confounder> {
    vec![Confounder::Location, Confounder::Unobserved, Confounder::Unobserved]
}

pub(super) fn entries() -> usize {
    80
}

fn four() -> usize {
    4
}

fn kernel() -> usize {
    5
}

pub(super) fn nms() -> f64 {
    0.45
}
