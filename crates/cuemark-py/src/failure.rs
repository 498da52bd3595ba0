//! Errors as Python exceptions, with the text that the command line gives and its hint in the words of Python.

use cuemark_core::{Advice, Advise, Dialect, Stopped};
use cuemark_data::DataError;
use cuemark_formats::{ReadError, UnknownFormat};
use cuemark_metrics::EvalError;
use cuemark_protocols::ProtocolError;
use cuemark_search::SearchError;
use cuemark_tensor::UnknownDevice;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The result of a binding.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a call cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file, or something in memory that is read like one.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A dataset or a truth file.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A request that says what cannot be, or what came of it.
    #[error(transparent)]
    Request(cuemark::Error),
    /// A protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// An index or its encoder.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The name of a device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// The name of a prediction layout.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// Called off; a pending signal has its own exception, which comes first.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// An argument has the right type and says something that cannot be: `truth[3]: …`.
    #[error("{place}: {problem}")]
    Argument { place: String, problem: String, hint: Option<Advice> },
    /// An argument is of a type that nothing can be made of.
    #[error("{place}: {problem}")]
    Type { place: String, problem: String, hint: Option<Advice> },
    /// Python itself raised something.
    #[error(transparent)]
    Python(#[from] PyErr),
}

impl Failure {
    /// A value that cannot be; `place` names the argument and the row.
    pub(crate) fn argument(place: impl Into<String>, problem: impl ToString) -> Self {
        Self::Argument { place: place.into(), problem: problem.to_string(), hint: None }
    }

    /// A type that cannot be.
    pub(crate) fn wrong_type(place: impl Into<String>, problem: impl ToString) -> Self {
        Self::Type { place: place.into(), problem: problem.to_string(), hint: None }
    }

    /// The same with advice.
    pub(crate) fn with_hint(mut self, advice: impl Into<Advice>) -> Self {
        if let Self::Argument { hint, .. } | Self::Type { hint, .. } = &mut self {
            *hint = Some(advice.into());
        }
        self
    }

    /// A fault in something that lay in memory is one of the argument: row 2 of `truth`, not line 3 of a file.
    pub(crate) fn of_argument(self, argument: &str) -> Self {
        let read = match self {
            Self::Read(read) | Self::Data(DataError::Read(read)) => read,
            Self::Data(DataError::UnknownLayout { .. }) => {
                let problem = "the records are of no layout that cuemark knows";
                return Self::argument(argument, problem).with_hint(
                    "a query is {\"qid\": …, \"video\": …, \"spans\": [[start, end]]}; docs/python.md lists the layouts",
                );
            }
            Self::Data(DataError::NoQueries { .. }) => return Self::argument(argument, "there is no query"),
            other => return other,
        };
        let hint = read.advice();
        match read {
            ReadError::Record { line, field, problem, .. } => {
                let place = format!("{argument}[{}]", line.saturating_sub(1));
                Self::Argument { place, problem: format!("`{field}`: {problem}"), hint }
            }
            ReadError::File { problem, .. } => Self::Argument { place: argument.to_owned(), problem, hint },
            other => Self::Read(other),
        }
    }

    /// The class in `cuemark._errors` that stands for it.
    fn class(&self) -> &'static str {
        match self {
            Self::Read(ReadError::Io { .. } | ReadError::Write { .. } | ReadError::Exists { .. })
            | Self::Data(DataError::Read(ReadError::Io { .. }) | DataError::NothingThere { .. })
            | Self::Protocol(ProtocolError::File(
                ReadError::Io { .. } | ReadError::Write { .. } | ReadError::Exists { .. },
            ))
            | Self::Search(
                SearchError::Io { .. } | SearchError::NoIndex { .. } | SearchError::Read(ReadError::Io { .. }),
            ) => "CuemarkFileError",
            Self::Type { .. } => "CuemarkTypeError",
            _ => "CuemarkError",
        }
    }
}

impl Advise for Failure {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Read(error) => error.advice(),
            Self::Data(error) => error.advice(),
            Self::Eval(error) => error.advice(),
            Self::Protocol(error) => error.advice(),
            Self::Search(error) => error.advice(),
            Self::Device(error) => error.advice(),
            Self::Format(error) => error.advice(),
            Self::Request(error) => error.advice(),
            Self::Argument { hint, .. } | Self::Type { hint, .. } => hint.clone(),
            Self::Stopped(_) | Self::Python(_) => None,
        }
    }
}

impl From<cuemark::Error> for Failure {
    /// What a library below said is classed as if the binding had called it; a setting of a request is an argument.
    fn from(error: cuemark::Error) -> Self {
        match error {
            cuemark::Error::Read(error) => Self::Read(error),
            cuemark::Error::Data(error) => Self::Data(error),
            cuemark::Error::Eval(error) => Self::Eval(error),
            cuemark::Error::Protocol(error) => Self::Protocol(*error),
            cuemark::Error::Search(error) => Self::Search(error),
            cuemark::Error::Device(error) => Self::Device(error),
            cuemark::Error::Format(error) => Self::Format(error),
            cuemark::Error::Stopped(stopped) => Self::Stopped(stopped),
            cuemark::Error::Setting { setting, problem, advice } => {
                Self::Argument { place: setting.to_owned(), problem, hint: advice }
            }
            cuemark::Error::Mismatch { file, problem, advice } => {
                Self::Argument { place: file, problem, hint: Some(advice) }
            }
            other => Self::Request(other),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let failure = match failure {
            Failure::Python(error) => return error,
            failure => failure,
        };
        Python::attach(|py| match class(py, failure.class()) {
            Ok(class) => {
                PyErr::from_type(class, (cuemark_core::whole_message(&failure), failure.advice_in(Dialect::Python)))
            }
            Err(error) => error,
        })
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("cuemark._errors")?.unbind()))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}
