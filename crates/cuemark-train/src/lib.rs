//! From annotations and clip features to trained models and their predictions.
//!
//! A [`RunFile`] says what is trained on what and how; [`train`] does it in a [`RunFolder`] of plain files that can be left
//! and taken up again at any moment; a [`Trained`] model read back from there answers the queries of any split. Models never
//! score themselves: predictions go through `cuemark-metrics` like everybody else's.

mod average;
mod batches;
mod checkpoint;
mod embed;
mod error;
mod examples;
mod first_stage;
mod footage;
mod found;
mod highlights;
mod kept;
mod log;
mod nearness;
mod negatives;
mod predict;
mod published_text;
mod published_weights;
mod query_features;
mod run_file;
mod run_folder;
mod scale;
mod schedule;
mod score;
mod session;
#[cfg(test)]
mod side_by_side;
mod splits;
mod stage;
mod text;
mod text_config;
mod token_cache;
mod trained;
mod trainer;

pub use average::Averaging;
pub use checkpoint::check_checkpoint;
pub use embed::{EmbeddedMoment, Embedder};
pub use error::{Result, TrainError};
pub use examples::{CutQueries, OutOfReach};
pub use first_stage::FirstStage;
pub use log::{Begun, Evaluated};
pub use nearness::{NearSentences, Nearness};
pub use predict::{Among, PredictOptions, Predicted};
pub use published_weights::OpenedWeights;
pub use run_file::{DataConfig, EvalConfig, Metrics, Optimiser, Override, RunFile, StageConfig, TrainConfig};
pub use run_folder::RunFolder;
pub use schedule::Schedule;
pub use text_config::{Markers, TextConfig, TextTraining};
pub use trained::Trained;
pub use trainer::{Outcome, Start, TrainOptions, train};
