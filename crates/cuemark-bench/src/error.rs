//! What can go wrong while a benchmark is put together.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise};
use cuemark_metrics::EvalError;
use cuemark_protocols::ProtocolError;
use cuemark_train::TrainError;
use cuemark_world::WorldError;

/// The result of a benchmark step.
pub type Result<T, E = BenchError> = std::result::Result<T, E>;

/// What is wrong and where.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A table of published figures is not a CSV file with the expected columns.
    #[error("published/{paper}.csv")]
    Table {
        /// The paper's key.
        paper: &'static str,
        /// What the CSV reader says, with the line.
        source: csv::Error,
    },
    /// A published value does not fit its unit.
    #[error("published/{paper}.csv:{line}: `value`: `{value}` is not a number, but its unit is {unit:?}")]
    Value {
        /// The paper's key.
        paper: &'static str,
        /// Line in the file, from 1.
        line: u64,
        /// What stands there.
        value: String,
        /// The unit beside it.
        unit: crate::Unit,
    },
    /// A stored evaluation does not hold together.
    #[error("{path}: `{field}`: {problem}")]
    Stored {
        /// The file.
        path: Utf8PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A folder holds nothing that a report could show.
    #[error("`{path}` holds no evaluated run")]
    NothingEvaluated {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// There is nothing to report on.
    #[error("there is nothing to report on: {problem}")]
    Nothing {
        /// What was asked for and is not there.
        problem: &'static str,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] cuemark_formats::ReadError),
    /// A truth file could not be read.
    #[error(transparent)]
    Data(#[from] cuemark_data::DataError),
    /// Predictions could not be scored.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A baseline or an audit could not be made.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// There is no such matrix.
    #[error("there is no matrix `{name}`")]
    NoMatrix {
        /// The file or name that was given.
        name: camino::Utf8PathBuf,
    },
    /// A matrix file that does not say what it must.
    #[error("{place}: {problem}")]
    Matrix {
        /// The file, with the line where it is known.
        place: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: Option<Advice>,
    },
    /// A cell's folder that is not what a matrix left there.
    #[error("{folder}: {problem}")]
    Cell {
        /// The folder or a file in it.
        folder: camino::Utf8PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A cell's folder holds a run of other settings.
    #[error("{cell} was trained with other settings")]
    OtherSettings {
        /// The cell.
        cell: String,
    },
    /// Two files of results disagree about one run.
    #[error("{run}: `{first}` and `{second}` have different figures")]
    TwoFigures {
        /// The run.
        run: String,
        /// The file that came first.
        first: String,
        /// The other one; the same when it stands twice in one.
        second: String,
    },
    /// A model could not be trained or did not answer.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Queries could not be rewritten.
    #[error(transparent)]
    Text(#[from] cuemark_text::TextError),
    /// A world could not be made or read.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl BenchError {
    /// Whether nothing is wrong: the work was stopped through [`cuemark_core::Progress`] and can be taken up again.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Eval(EvalError::Stopped(_))
                | Self::Train(TrainError::Stopped(_) | TrainError::Eval(EvalError::Stopped(_)))
                | Self::Protocol(ProtocolError::Stopped(_))
                | Self::World(WorldError::Stopped(_))
        )
    }
}

impl Advise for BenchError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Stored { .. } => {
                Some("evaluate the run again; the file was changed or made by another version".into())
            }
            Self::NothingEvaluated { .. } => {
                let name = Advice::say("name a folder that ").run("train").and(" or ").run("bench").and(" wrote");
                let score = name.and(", or score a prediction file with ");
                Some(score.set_any("pred", "FILE").set_any("truth", "FILE"))
            }
            Self::Nothing { .. } => {
                let scored = Advice::say("name run folders, ").setting("pred").and(" and ").setting("truth");
                Some(scored.and(", or ").setting("dataset").and(" and ").setting("root"))
            }
            Self::File(error) => error.advice(),
            Self::Data(error) => error.advice(),
            Self::Eval(error) => error.advice(),
            Self::Protocol(error) => error.advice(),
            Self::NoMatrix { name } => {
                let known = crate::matrix::matrices().map(|(known, _)| known);
                if let Some(near) = cuemark_core::nearest::nearest(name.as_str(), known) {
                    return Some(Advice::nearest(near));
                }
                Some(Advice::say("name a TOML file; ").run("bench --list").and(" names the ready ones"))
            }
            Self::Matrix { hint, .. } => {
                Some(hint.clone().unwrap_or_else(|| "`docs/benchmark.md` describes matrix files".into()))
            }
            Self::Cell { .. } => Some("remove the folder; the matrix will fill it again".into()),
            Self::OtherSettings { .. } => {
                let anew = Advice::say("pass ").set("force").and(" to train it anew, or ");
                Some(anew.setting("out").and(" for another folder"))
            }
            Self::TwoFigures { first, .. } => {
                let named =
                    format!("name `{first}` under `replaces` in the later file, or give one of the runs a `variant`");
                Some(named.into())
            }
            Self::Train(error) => error.advice(),
            Self::Text(error) => error.advice(),
            Self::World(error) => error.advice(),
            Self::Table { .. } | Self::Value { .. } => None,
        }
    }
}
