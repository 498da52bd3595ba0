//! What is trained on what, and how: the TOML file that a run starts from. Its keys are here; `parse.rs` reads them, `check.rs`
//! holds them against each other.

mod check;
mod parse;
#[cfg(test)]
mod tests;

use camino::Utf8PathBuf;
use cuemark_features::VISUAL;
use cuemark_metrics::{MetricName, parse_list};
use cuemark_tensor::Precision;
use cuemark_tensor::optim::Clip;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::{Averaging, Result, Schedule, TextConfig};

/// A run file, checked. Unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFile {
    /// The model's name.
    #[serde(skip)]
    pub model: String,
    /// The model's settings without its name.
    #[serde(rename = "model")]
    pub settings: Table,
    /// What it learns from.
    pub data: DataConfig,
    /// How it learns.
    pub train: TrainConfig,
    /// How it is judged on the way.
    pub eval: EvalConfig,
}

/// What a run learns from: `[data]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// A dataset by name, `world` for the built-in one. Left out: `train` and `val` are files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The dataset's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Utf8PathBuf>,
    /// The training split: a name of the dataset's, or a truth file. Default: train
    pub train: String,
    /// The split on which the best checkpoint is chosen. Default: val
    pub val: String,
    /// Clip features, in any layout that `cuemark features info` reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Utf8PathBuf>,
    /// The stream of clip features. Default: visual
    pub stream: String,
    /// The stream of subtitle features, in the same store; left out: models run without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<String>,
    /// Further streams of clip features, in the same store, whose rows stand beside those of `stream`. Default: none
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The stream of audio features, in the same store; left out: models run without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<String>,
    /// The stream of word features, in the same store, one row per word under the query's id. Left out: word vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<String>,
    /// Word features of the queries in a store of their own, in any layout that `cuemark features info` reads, one row per word
    /// under the query's id; `queries` names the stream where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_features: Option<Utf8PathBuf>,
    /// A published text encoder that reads the queries: `[data.text]`. Left out: words of the training queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextConfig>,
    /// Seconds per row, for layouts that do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_length: Option<f64>,
    /// Brings every number of a row of clip features to mean 0 and deviation 1 over the training videos first. Default: false
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standardise: bool,
    /// Rows share the video's duration evenly, for layouts that do not say. Default: false
    pub rows_span_duration: bool,
    /// A file of word vectors (GloVe). Left out: vectors are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Utf8PathBuf>,
    /// Width of trained word vectors. Default: 64
    pub word_width: usize,
    /// Words that occur less often in the training queries are unknown. Default: 1
    pub least_count: usize,
    /// What says that a video shows what a query means though it was not written for it, for models that leave such pairs out:
    /// `tfidf`, `minilm`, `encoder:NAME`, or `log`, the event log of the built-in world. Default: tfidf
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<String>,
    /// Parses of the queries, for models that read them. Left out: our shallow parser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parses: Option<Utf8PathBuf>,
    /// What another model answered to the training queries among all training videos: where a second stage (CONQUER) draws its
    /// negatives. Left out: from other videos of the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_stage: Option<Utf8PathBuf>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            dataset: None,
            root: None,
            train: "train".to_owned(),
            val: "val".to_owned(),
            features: None,
            stream: VISUAL.to_owned(),
            subtitles: None,
            beside: Vec::new(),
            audio: None,
            queries: None,
            query_features: None,
            text: None,
            clip_length: None,
            standardise: false,
            rows_span_duration: false,
            words: None,
            word_width: 64,
            least_count: 1,
            similarity: None,
            parses: None,
            first_stage: None,
        }
    }
}

/// How a model learns: `[train]`, and one `[[train.stage]]` per stage that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainConfig {
    /// Seed of everything random. Default: 0
    pub seed: u64,
    /// Threads that prepare batches. Default: 1
    pub workers: usize,
    /// Arithmetic of matrix products on a GPU. Default: tf32
    pub precision: Precision,
    /// Weights to start from, by the reference's names: safetensors or PyTorch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Utf8PathBuf>,
    /// Minutes after which training ends, shared among the stages by their epochs; schedules are shortened to fit, so that the
    /// rate still falls to its end. What comes out depends on the machine. Left out: as long as the epochs take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// What is done, in order.
    #[serde(rename = "stage")]
    pub stages: Vec<StageConfig>,
}

/// One stage of training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Passes over the training split.
    pub epochs: usize,
    /// Pairs per step, or videos for models that learn from whole videos. Default: 32
    #[serde(default = "batch")]
    pub batch: usize,
    /// Learning rate.
    pub rate: f64,
    /// Default: adam
    #[serde(default)]
    pub optimiser: Optimiser,
    /// Default: [0.9, 0.999]
    #[serde(default = "betas")]
    pub betas: [f64; 2],
    /// Default: 1e-8
    #[serde(default = "eps")]
    pub eps: f64,
    /// Default: 0
    #[serde(default)]
    pub weight_decay: f64,
    /// What stays of earlier gradients in a step of `sgd`. Default: 0
    #[serde(default)]
    pub momentum: f64,
    /// Gradients that are longer than this all together are shortened to it; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Each tensor's gradient that is longer than this is shortened to it; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_tensor_norm: Option<f64>,
    /// Every number of a gradient is kept within plus and minus this; left out: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_value: Option<f64>,
    /// How the rate changes. Default: constant
    #[serde(default)]
    pub schedule: Schedule,
    /// Judges and keeps an average of the weights; left out: the weights themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<Averaging>,
}

/// How steps are made from gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Weight decay is part of the gradient. Default.
    #[default]
    Adam,
    /// Weight decay is apart from the gradient.
    Adamw,
    /// Gradient descent with `momentum`; weight decay is part of the gradient.
    Sgd,
}

impl StageConfig {
    /// How gradients are kept within bounds; a checked run file says one way at most.
    pub fn clip(&self) -> Clip {
        match (self.clip_norm, self.clip_tensor_norm, self.clip_value) {
            (Some(limit), ..) => Clip::Norm(limit),
            (None, Some(limit), _) => Clip::EachTensor(limit),
            (None, None, Some(limit)) => Clip::EachNumber(limit),
            (None, None, None) => Clip::Never,
        }
    }
}

/// How a run is judged on the way: `[eval]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvalConfig {
    /// The metric that chooses the best checkpoint, or several whose mean does. Default: R@1,IoU=0.5
    pub metric: Metrics,
    /// Epochs between evaluations; parts of one are fine. Default: 1.0
    pub every: f64,
    /// Evaluations without anything better after which the stage ends; left out: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Queries of the validation split that are asked, drawn by the seed, where asking all would take longer than training; left out:
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<usize>,
    /// Answers kept per query. Default: 10
    pub answers: usize,
    /// Pairs per step of an evaluation. Default: 64
    pub batch: usize,
}

/// One metric or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metrics {
    /// One.
    One(String),
    /// Their mean counts.
    Mean(Vec<String>),
}

fn batch() -> usize {
    32
}

fn betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn eps() -> f64 {
    1e-8
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            metric: Metrics::One("R@1,IoU=0.5".to_owned()),
            every: 1.0,
            patience: None,
            queries: None,
            answers: 10,
            batch: 64,
        }
    }
}

impl EvalConfig {
    /// The metrics whose mean chooses the best checkpoint.
    ///
    /// # Errors
    /// For a name that is no metric.
    pub fn metrics(&self) -> Result<Vec<MetricName>> {
        let names = match &self.metric {
            Metrics::One(name) => vec![name],
            Metrics::Mean(names) => names.iter().collect(),
        };
        let mut metrics = Vec::new();
        for name in names {
            metrics.extend(parse_list(name)?);
        }
        Ok(metrics)
    }
}

/// A key set from outside the file, such as `train.epochs=3`, and where that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Keys joined by dots.
    pub key: String,
    /// TOML, or plain text.
    pub value: String,
    /// Who said so: a flag or an environment variable.
    pub origin: String,
}
