//! What can be wrong with a file from outside, said so that a person can act on it.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Advise};

use crate::budget::{Exceeded, MEMORY};

/// The result of reading or writing a file.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;

/// What is wrong, where, and (through [`Advise`]) what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read `{path}`")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The operating system refused a write.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// One record says something that cannot be.
    #[error("{path}:{line}: `{field}`: {problem}")]
    Record {
        /// The file.
        path: Utf8PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The field, with the way to it inside the record: `v_abc.timestamps[2]`.
        field: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: Option<Advice>,
    },
    /// The file as a whole is not what was expected.
    #[error("{path}: {problem}")]
    File {
        /// The file or folder.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: Option<Advice>,
    },
    /// A line, or the file once decompressed, is larger than anything the field publishes.
    #[error("{path}: {what} is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// The file.
        path: Utf8PathBuf,
        /// What is too large: `line 7`, `the decompressed file`.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// What the file would have us keep is more than the memory budget.
    #[error("{path}: {place}: {exceeded}")]
    Memory {
        /// The file.
        path: Utf8PathBuf,
        /// What is too much: `line 7`, ``line 7, `extra` ``, `` `data.pkl` ``.
        place: String,
        /// What was asked for, what was taken, and the budget.
        exceeded: Exceeded,
    },
    /// Something stands where the output should go.
    #[error("`{path}` exists already")]
    Exists {
        /// The output.
        path: Utf8PathBuf,
    },
}

impl ReadError {
    /// A record's fault, without a hint.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over messages and errors alike")]
    pub fn record(path: &Utf8Path, line: usize, field: impl Into<String>, problem: impl ToString) -> Self {
        Self::Record { path: path.to_owned(), line, field: field.into(), problem: problem.to_string(), hint: None }
    }

    /// A fault of the file as a whole, without a hint.
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over messages and errors alike")]
    pub fn file(path: &Utf8Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_owned(), problem: problem.to_string(), hint: None }
    }

    /// What would have passed the memory budget, at `place` in the file.
    pub fn memory(path: &Utf8Path, place: impl Into<String>, exceeded: Exceeded) -> Self {
        Self::Memory { path: path.to_owned(), place: place.into(), exceeded }
    }

    /// The same error with advice: words, or an [`Advice`] that names settings; kinds of error that carry their own keep it.
    #[must_use]
    pub fn with_hint(mut self, advice: impl Into<Advice>) -> Self {
        if let Self::Record { hint, .. } | Self::File { hint, .. } = &mut self {
            *hint = Some(advice.into());
        }
        self
    }
}

impl Advise for ReadError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Record { hint: None, .. } => {
                Some("correct that value or leave the record out; nothing was read or written".into())
            }
            Self::Record { hint, .. } | Self::File { hint, .. } => hint.clone(),
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("check the path; a `.gz` or `.zst` beside it is found by its plain name too".into())
            }
            Self::Io { .. } | Self::Write { .. } => None,
            Self::TooLarge { .. } => {
                Some("no published file comes near this size: check where the file comes from".into())
            }
            Self::Memory { .. } => Some(Advice::say(format!(
                "if you trust the file, give it more: set the environment variable `{MEMORY}` to, say, 8G"
            ))),
            Self::Exists { .. } => Some(Advice::say("pass ").set("force").and(" to replace it")),
        }
    }
}
