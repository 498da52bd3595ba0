//! Why a request could not be carried out.

use cuemark_bench::BenchError;
use cuemark_core::{Advice, Advise, Stopped};
use cuemark_data::DataError;
use cuemark_encoders::EncodeError;
use cuemark_features::FeatureError;
use cuemark_formats::{ReadError, UnknownFormat, UnknownParser};
use cuemark_media::MediaError;
use cuemark_metrics::EvalError;
use cuemark_ocr::OcrError;
use cuemark_protocols::ProtocolError;
use cuemark_search::SearchError;
use cuemark_speech::SpeechError;
use cuemark_tensor::UnknownDevice;
use cuemark_text::TextError;
use cuemark_text::similarity::SimilarityError;
use cuemark_train::TrainError;
use cuemark_world::WorldError;

use crate::LoadedCheckpoint;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request could not be carried out: what the library below said, or what is wrong with the request itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The name of a prediction layout.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// The parser of free-text answers.
    #[error(transparent)]
    Parser(#[from] UnknownParser),
    /// A dataset or a truth file.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// Clip features.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// An encoder or its weights.
    #[error(transparent)]
    Encode(Box<EncodeError>),
    /// A video file, or the programs that read it.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// What is said in a film.
    #[error(transparent)]
    Speech(Box<SpeechError>),
    /// What is written in a film.
    #[error(transparent)]
    Ocr(Box<OcrError>),
    /// A protocol or a baseline.
    #[error(transparent)]
    Protocol(Box<ProtocolError>),
    /// A run, or the model that it trained.
    #[error(transparent)]
    Train(Box<TrainError>),
    /// Sentences that could not be rewritten.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Sentences that could not be compared.
    #[error(transparent)]
    Similarity(#[from] SimilarityError),
    /// A world.
    #[error(transparent)]
    World(Box<WorldError>),
    /// A study or a report.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// An index or its encoder.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The name of a device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// Predictions do not belong to the truth they were to be scored against.
    #[error("{file}: {problem}")]
    Mismatch {
        /// The predictions.
        file: String,
        /// What was looked for and what was found.
        problem: String,
        /// What to do.
        advice: Advice,
    },
    /// A checkpoint is not one of the method it was to answer with; the table says name by name why.
    #[error("{path} does not fit\n{loaded}")]
    Checkpoint {
        /// The checkpoint.
        path: String,
        /// How it and the method go together.
        loaded: Box<LoadedCheckpoint>,
    },
    /// A setting of the request says what cannot be.
    #[error("`{setting}`: {problem}")]
    Setting {
        /// The field of the request.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        advice: Option<Advice>,
    },
    /// The request is understood and there is nothing to do it with.
    #[error("{problem}")]
    Nothing {
        /// What is lacking.
        problem: String,
        /// What to do.
        advice: Option<Advice>,
    },
    /// Somebody stopped it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The largest are boxed: every request's result would carry their size.
macro_rules! boxed {
    ($($case:ident: $error:ty),+ $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$case(Box::new(error))
            }
        })+
    };
}

boxed!(
    Bench: BenchError,
    Encode: EncodeError,
    Ocr: OcrError,
    Protocol: ProtocolError,
    Speech: SpeechError,
    Train: TrainError,
    World: WorldError,
);

impl Error {
    /// A setting that cannot be.
    pub fn setting(setting: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { setting, problem: problem.into(), advice: None }
    }

    /// Nothing to do it with.
    pub fn nothing(problem: impl Into<String>) -> Self {
        Self::Nothing { problem: problem.into(), advice: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn advise(mut self, given: Advice) -> Self {
        if let Self::Setting { advice, .. } | Self::Nothing { advice, .. } = &mut self {
            *advice = Some(given);
        }
        self
    }
}

impl Advise for Error {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Read(error) => error.advice(),
            Self::Format(error) => error.advice(),
            Self::Parser(error) => error.advice(),
            Self::Data(error) => error.advice(),
            Self::Eval(error) => error.advice(),
            Self::Features(error) => error.advice(),
            Self::Encode(error) => error.advice(),
            Self::Media(error) => error.advice(),
            Self::Speech(error) => error.advice(),
            Self::Ocr(error) => error.advice(),
            Self::Protocol(error) => error.advice(),
            Self::Train(error) => error.advice(),
            Self::Text(error) => error.advice(),
            Self::Similarity(error) => error.advice(),
            Self::World(error) => error.advice(),
            Self::Search(error) => error.advice(),
            Self::Bench(error) => error.advice(),
            Self::Device(error) => error.advice(),
            Self::Setting { advice, .. } | Self::Nothing { advice, .. } => advice.clone(),
            Self::Mismatch { advice, .. } => Some(advice.clone()),
            Self::Checkpoint { loaded, .. } => Some(misfit(loaded)),
            Self::Stopped(_) => None,
        }
    }
}

/// What to do about a checkpoint that does not fit.
fn misfit(loaded: &LoadedCheckpoint) -> Advice {
    if loaded.fit.missing.is_empty() {
        return Advice::say("give the run file of its sizes as ").setting("config").and(", and features of its width");
    }
    Advice::say("what may be absent and drawn anew is named by ").set_any("allow_missing", "PREFIX")
}
