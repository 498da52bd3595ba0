//! What can go wrong between a run file and its predictions.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_data::DataError;
use cuemark_encoders::EncodeError;
use cuemark_features::FeatureError;
use cuemark_formats::ReadError;
use cuemark_metrics::EvalError;
use cuemark_models::ModelError;
use cuemark_text::TextError;
use cuemark_text::similarity::SimilarityError;

/// The crate's result.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

/// What can go wrong between a run file and its predictions.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A run file that does not say what it must.
    #[error("{path}: {problem}")]
    RunFile {
        /// The run file, or the place that set the key.
        path: String,
        /// What is wrong, with the key.
        problem: String,
        /// What to do.
        hint: Option<Advice>,
    },
    /// A setting that the run's model, or whoever runs it, cannot follow; no reader of the file alone could tell.
    #[error("`{key}`: {problem}")]
    Setting {
        /// The key of the run file.
        key: &'static str,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: Option<Advice>,
    },
    /// A checkpoint would be chosen on a test split.
    #[error("{path}: `data.val` is `{split}`: checkpoints must not be chosen on a test split")]
    ChosenOnTest {
        /// The run file.
        path: String,
        /// The split.
        split: String,
    },
    /// A split that has nothing to train on or to answer.
    #[error("split `{split}` has no query that can be used: {why}")]
    EmptySplit {
        /// The split.
        split: String,
        /// What happened to its queries.
        why: String,
    },
    /// A query that names no video or a video without a duration.
    #[error("query `{query}`: {problem}")]
    Query {
        /// The query.
        query: String,
        /// What it lacks.
        problem: &'static str,
    },
    /// A run folder that is not what is wanted of it.
    #[error("{path}: {problem}")]
    Folder {
        /// The folder or a file in it.
        path: Utf8PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: Advice,
    },
    /// Training went out of bounds.
    #[error("the loss became {loss} at step {step}")]
    Diverged {
        /// What the loss was.
        loss: f64,
        /// The step, from 1.
        step: usize,
    },
    /// It was stopped through [`cuemark_core::Progress`].
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// From the readers of annotations.
    #[error(transparent)]
    Data(#[from] DataError),
    /// From the feature stores.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// From a published text encoder.
    #[error(transparent)]
    Encode(Box<EncodeError>),
    /// From the evaluator.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// From the models.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// From parses and words.
    #[error(transparent)]
    Text(#[from] TextError),
    /// From comparing queries.
    #[error(transparent)]
    Similarity(#[from] SimilarityError),
    /// From reading and writing files.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<candle_core::Error> for TrainError {
    fn from(error: candle_core::Error) -> Self {
        Self::Model(error.into())
    }
}

impl From<EncodeError> for TrainError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Box::new(error))
    }
}

impl Advise for TrainError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::ChosenOnTest { .. } => {
                let name = Advice::say("name a validation split; ").run("split make");
                Some(name.and(" makes one where none is published"))
            }
            Self::EmptySplit { .. } => {
                let look = Advice::say("look at the split with ").run("data stats");
                Some(look.and(" and at the features with ").run("features info"))
            }
            Self::Query { .. } => Some("every training query needs one video with a duration and a span".into()),
            Self::RunFile { hint, .. } | Self::Setting { hint, .. } => hint.clone(),
            Self::Folder { hint, .. } => Some(hint.clone()),
            Self::Diverged { .. } => Some("lower `train.rate` or set `train.clip_norm`".into()),
            Self::Stopped(_) => None,
            Self::Data(error) => error.advice(),
            Self::Features(error) => error.advice(),
            Self::Encode(error) => error.advice(),
            Self::Eval(error) => error.advice(),
            Self::Model(error) => error.advice(),
            Self::Text(error) => error.advice(),
            Self::Similarity(error) => error.advice(),
            Self::Read(error) => error.advice(),
        }
    }
}
