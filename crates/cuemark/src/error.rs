//! Why a request could not be carried out.

use cuemark_core::{Advice, Advise, Stopped};
use cuemark_data::DataError;
use cuemark_features::FeatureError;
use cuemark_formats::{ReadError, UnknownFormat};
use cuemark_metrics::EvalError;
use cuemark_search::SearchError;
use cuemark_tensor::UnknownDevice;

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
    /// A dataset or a truth file.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// Clip features.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// An index or its encoder.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The name of a device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
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

impl Error {
    /// A setting that cannot be.
    pub fn setting(setting: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { setting, problem: problem.into(), advice: None }
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
            Self::Data(error) => error.advice(),
            Self::Eval(error) => error.advice(),
            Self::Features(error) => error.advice(),
            Self::Search(error) => error.advice(),
            Self::Device(error) => error.advice(),
            Self::Setting { advice, .. } | Self::Nothing { advice, .. } => advice.clone(),
            Self::Stopped(_) => None,
        }
    }
}
