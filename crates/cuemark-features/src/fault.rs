//! What is wrong with bytes from outside, before it is known which file they are from.

use std::fmt;
use std::io;

use camino::Utf8Path;
use cuemark_formats::npy::HeadError;
use cuemark_formats::{Exceeded, ReadError, Unread};

/// A fault of a part of a file.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is not what it should be; the text says why.
    Wrong(String),
    /// It cannot be read.
    Io(io::Error),
    /// It would pass the memory budget.
    Memory(Exceeded),
    /// It is larger than anybody allows.
    TooLarge(u64),
}

impl Fault {
    /// The same of the part called `what`.
    pub(crate) fn of(self, what: &str) -> Self {
        match self {
            Self::Wrong(problem) => Self::Wrong(format!("`{what}`: {problem}")),
            other => other,
        }
    }

    /// As an error of the file at `path`, in which the bytes are called `place`.
    pub(crate) fn at(self, path: &Utf8Path, place: &str) -> ReadError {
        match self {
            Self::Wrong(problem) => ReadError::file(path, problem),
            Self::Io(source) => ReadError::Io { path: path.to_owned(), source },
            Self::Memory(exceeded) => ReadError::memory(path, place, exceeded),
            Self::TooLarge(limit) => ReadError::TooLarge { path: path.to_owned(), what: place.to_owned(), limit },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(problem) => f.write_str(problem),
            Self::Io(error) => error.fmt(f),
            Self::Memory(exceeded) => exceeded.fmt(f),
            Self::TooLarge(limit) => write!(f, "is larger than {} MiB", limit >> 20),
        }
    }
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Self::Wrong(problem)
    }
}

impl From<&str> for Fault {
    fn from(problem: &str) -> Self {
        Self::Wrong(problem.to_owned())
    }
}

impl From<Exceeded> for Fault {
    fn from(exceeded: Exceeded) -> Self {
        Self::Memory(exceeded)
    }
}

impl From<Unread> for Fault {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Io(error) => Self::Io(error),
            Unread::Exceeded(exceeded) => Self::Memory(exceeded),
        }
    }
}

impl From<HeadError> for Fault {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Io(error) => Self::Io(error),
            HeadError::Wrong(problem) => Self::Wrong(problem),
        }
    }
}

/// Names from hostile files are cut to this many characters in messages.
const LONGEST_NAME: usize = 80;

/// `name`, cut when a hostile file made it long.
pub(crate) fn shorten(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
