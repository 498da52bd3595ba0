//! One square of the matrix: who answers, having learnt from what, and what is asked.

use std::num::NonZeroUsize;

use camino::Utf8PathBuf;
use cuemark_features::FeatureVariant;
use cuemark_train::{Among, DataConfig};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::command::Program;
use super::file::Protocol;
use crate::report::{Answerer, QueryText};

/// One square of the matrix, with everything that a process needs to fill it: the `cell.json` of its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its folder's name, below `cells/`.
    pub name: String,
    /// What the dataset is called.
    pub dataset: String,
    /// The dataset's own name.
    pub dataset_name: String,
    /// Who cut it into splits.
    pub protocol: Protocol,
    /// The model's or baseline's name.
    pub model: String,
    /// What sets it apart from others of that name.
    pub variant: String,
    /// The label of its features; empty when it looks at none.
    pub features: String,
    /// Its seed.
    pub seed: u64,
    /// How its tests are answered.
    pub by: Method,
    /// Where its splits are found.
    pub data: DataConfig,
    /// The folder of splits that a protocol made; `None` when they are the dataset's own.
    pub splits: Option<Utf8PathBuf>,
    /// What is asked, in order.
    pub tests: Vec<CellTest>,
    /// Cells that must be done before, by name.
    pub needs: Vec<String>,
}

/// How the tests of a cell are answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Method {
    /// A model, trained first.
    Model {
        /// Its run file, everything filled in.
        run: String,
        /// Moments per training query, the likest by their captions; `None` learns from the true ones.
        pseudo_moments: Option<usize>,
    },
    /// A command that somebody brings.
    Command(Program),
    /// A guess that never sees a video.
    Baseline,
    /// The world's log.
    Oracle,
    /// A model of another cell, in the videos that a third one chose.
    TwoStage {
        /// The folder of the cell that chooses.
        first: Utf8PathBuf,
        /// The folder of the cell that answers.
        second: Utf8PathBuf,
        /// Videos that are left of a pool.
        videos: usize,
    },
}

impl Method {
    /// The kind of whoever answers, as results name it.
    pub fn answerer(&self) -> Answerer {
        match self {
            Self::Model { .. } | Self::TwoStage { .. } | Self::Command(_) => Answerer::Model,
            Self::Baseline => Answerer::Baseline,
            Self::Oracle => Answerer::Oracle,
        }
    }
}

/// One test of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellTest {
    /// What it is called.
    pub name: String,
    /// The split, by name or as a truth file.
    pub split: String,
    /// Where each query is searched.
    pub among: Among,
    /// What is done to the queries.
    pub text: QueryText,
    /// What the model is shown.
    pub footage: FeatureVariant,
    /// Answers kept per query; `None` leaves it to the run file and the metrics.
    pub answers: Option<usize>,
    /// Only the first of every so many queries is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<NonZeroUsize>,
    /// Metrics; none leaves it to the report.
    pub metrics: Vec<String>,
    /// A published evaluator to agree with.
    pub preset: Option<String>,
}

impl Cell {
    /// A fingerprint of everything that training depends on; tests may be added without training anew.
    pub fn training_print(&self) -> String {
        print_of(&(&self.by, &self.data, &self.splits, self.seed))
    }

    /// A fingerprint of everything that the answers to `test` depend on.
    pub fn test_print(&self, test: &CellTest) -> String {
        print_of(&(self.training_print(), test))
    }
}

fn print_of(value: &impl Serialize) -> String {
    // What is hashed has no map without an order and no number that JSON lacks.
    let text = serde_json::to_vec(value).unwrap_or_default();
    cuemark_core::digest::hex(&Sha256::digest(&text)[..8])
}
