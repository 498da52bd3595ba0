//! What can go wrong with a tool, and with the whole.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise};

/// The crate's result.
pub(crate) type Result<T, E = McpError> = std::result::Result<T, E>;

/// Why there is no server, or why a tool did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// A folder that was to be allowed.
    #[error("`{path}` cannot be allowed: {problem}")]
    Root {
        /// The folder.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The machinery under it cannot be started.
    #[error("cannot start")]
    Start(#[from] std::io::Error),
    /// Something that is not there, or leads out of the folders: who asks is not told which.
    #[error("`{field}`: `{path}` is not in the allowed folders: it is not there, or lies or leads outside")]
    Outside {
        /// The argument.
        field: &'static str,
        /// What it said.
        path: String,
        /// The folders.
        roots: Vec<Utf8PathBuf>,
    },
    /// Arguments that are not what the tool takes.
    #[error("`{field}`: {problem}")]
    Arguments {
        /// Which; empty where it is all of them.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nothing may be written.
    #[error("`out`: nothing may be written into the allowed folders")]
    ReadOnly,
    /// A file is there already.
    #[error("`out`: `{path}` is there already, and nothing is replaced")]
    Exists {
        /// The file.
        path: Utf8PathBuf,
    },
    /// Answers that no assistant wants to read.
    #[error("the answer has {bytes} bytes, more than {most}")]
    TooLong {
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// More is asked than can be done.
    #[error("too much is asked at a time")]
    Busy,
    /// The call took too long.
    #[error("it took longer than {seconds} s")]
    TimeOver {
        /// The bound.
        seconds: u64,
    },
    /// What was asked for could not be carried out.
    #[error(transparent)]
    Request(Box<cuemark::Error>),
}

/// The largest is boxed: every result would carry its size.
impl From<cuemark::Error> for McpError {
    fn from(error: cuemark::Error) -> Self {
        Self::Request(Box::new(error))
    }
}

impl McpError {
    pub(crate) fn argument(field: &str, problem: impl Into<String>) -> Self {
        Self::Arguments { field: field.to_owned(), problem: problem.into() }
    }
}

impl Advise for McpError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Root { .. } => Some(Advice::say("name a folder that is there: ").set_any("root", "DIR")),
            Self::Outside { roots, .. } => {
                let roots: Vec<&str> = roots.iter().map(|root| root.as_str()).collect();
                Some(Advice::say(format!(
                    "allowed: {}; the tool `films` lists what is there, and whoever started `cuemark mcp` can allow more with \
                     `--root DIR`",
                    roots.join(", ")
                )))
            }
            Self::ReadOnly => Some(Advice::say(
                "leave `out` away and the clip is written to a temporary folder; `cuemark mcp --allow-write` allows more",
            )),
            Self::Exists { .. } => Some(Advice::say("choose another name")),
            Self::TooLong { .. } => Some(Advice::say("ask for less, such as a smaller `limit`")),
            Self::Busy => Some(Advice::say("try again in a moment")),
            Self::TimeOver { .. } => Some(Advice::say(
                "a long film is better read once, in a terminal: `cuemark index create INDEX FILM`; then `search` answers at once",
            )),
            Self::Request(error) => error.advice(),
            Self::Start(_) | Self::Arguments { .. } => None,
        }
    }
}
