//! What can be wrong with a model, its settings or its fixture.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise};
use cuemark_formats::ReadError;

/// The crate's result.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;

/// What can be wrong with a model, its settings or its fixture.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No model of that name.
    #[error("no model `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<&'static str>,
    },
    /// A `[model]` table that does not fit the model.
    #[error("`[model]` of `{model}`: {problem}")]
    Settings {
        /// The model.
        model: &'static str,
        /// What is wrong, with the key.
        problem: String,
    },
    /// A batch that lacks what the model reads.
    #[error("`{model}` needs {what}")]
    Missing {
        /// The model.
        model: &'static str,
        /// What it needs.
        what: &'static str,
    },
    /// A query of a batch that cannot be read.
    #[error("query `{query}` {problem}")]
    Row {
        /// The query.
        query: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A fixture that does not keep to its layout.
    #[error("{path}: `{name}`: {problem}")]
    Fixture {
        /// The fixture.
        path: Utf8PathBuf,
        /// The tensor or key.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A tensor operation that cannot be done: shapes that do not fit, memory that is not there.
    #[error("{0}")]
    Tensor(candle_core::Error),
}

impl From<candle_core::Error> for ModelError {
    /// Without the trace through our own code, which tells a user nothing.
    fn from(error: candle_core::Error) -> Self {
        match error {
            candle_core::Error::WithBacktrace { inner, .. } => Self::Tensor(*inner),
            error => Self::Tensor(error),
        }
    }
}

impl Advise for ModelError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Unknown { nearest: Some(nearest), .. } => Some(Advice::nearest(nearest)),
            Self::Unknown { .. } => Some(Advice::command("models list").and(" shows them all")),
            Self::Settings { model, .. } => {
                Some(Advice::command(format!("models show {model}")).and(" lists its settings"))
            }
            Self::Missing { .. } => Some(Advice::say("see `needs` in ").run("models show")),
            Self::Row { .. } => Some("leave the query out, or repair its row".into()),
            Self::Fixture { .. } => Some("the layout of fixtures is described in `docs/models.md`".into()),
            Self::Read(error) => error.advice(),
            Self::Tensor(_) => Some("the sizes in `[model]` must fit each other and the features".into()),
        }
    }
}
