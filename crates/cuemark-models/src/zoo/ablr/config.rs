//! What a run file may say about the network.

use serde::{Deserialize, Serialize};

use crate::layers::WordSource;

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblrConfig {
    /// Clips that a video's features are averaged to.
    pub clips: usize,
    /// Width that features are projected to first. Default: as wide as they are, no projection
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<usize>,
    /// Width of all states. Default: 256
    #[serde(default = "hidden")]
    pub hidden: usize,
    /// Width of the regression's hidden layer. Default: 64
    #[serde(default = "regression_hidden")]
    pub regression_hidden: usize,
    /// What start and end are regressed from. Default: weights
    #[serde(default)]
    pub regression: Regression,
    /// What is added to the forget gates. Default: 1.0
    #[serde(default = "one")]
    pub forget_bias: f64,
    /// Weight of the attention's loss. Default: 5.0
    #[serde(default = "attention_weight")]
    pub attention_weight: f64,
    /// Weight of the regression's loss, a sum over the batch. Default: 1.0
    #[serde(default = "one")]
    pub regression_weight: f64,
    /// Share of the LSTMs' outputs dropped. Default: 0.5
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Whether answers stand on the grid of clips. Default: exact
    #[serde(default)]
    pub answers: Answers,
    /// Where word vectors come from. Default: given
    #[serde(default)]
    pub word_vectors: WordSource,
}

/// What start and end are regressed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regression {
    /// The attention weights of all clips. Default.
    #[default]
    Weights,
    /// The attended video and query.
    Features,
}

/// Where answers may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Anywhere. Default.
    #[default]
    Exact,
    /// Where a clip begins, rounded down, as in the published code.
    Grid,
}

fn hidden() -> usize {
    256
}

fn regression_hidden() -> usize {
    64
}

fn one() -> f64 {
    1.0
}

fn attention_weight() -> f64 {
    5.0
}

fn dropout() -> f64 {
    0.5
}
