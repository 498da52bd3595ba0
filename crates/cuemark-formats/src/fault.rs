//! What is wrong inside one JSON value, before the file and the line are known.

use cuemark_core::Advice;

use crate::{Exceeded, ReadError, Source};

/// A problem and the way to it; the way is put together from the inside out, and only when there is a problem.
#[derive(Debug)]
pub(crate) struct Fault {
    field: String,
    problem: String,
    hint: Option<Advice>,
    /// Set when the fault is that there is not memory enough.
    exceeded: Option<Exceeded>,
    /// Byte offset in the text that was walked.
    at: usize,
}

/// The result of walking over a part of a JSON value.
pub(crate) type Walk<T> = Result<T, Box<Fault>>;

/// Names from hostile files are cut to this many characters in messages.
const LONGEST_NAME: usize = 80;

impl Fault {
    #[expect(clippy::needless_pass_by_value, reason = "callers hand over messages and errors alike")]
    pub(crate) fn new(at: usize, problem: impl ToString) -> Box<Self> {
        Box::new(Self { field: String::new(), problem: problem.to_string(), hint: None, exceeded: None, at })
    }

    /// What stands at `at` would pass the memory budget.
    pub(crate) fn memory(at: usize, exceeded: Exceeded) -> Box<Self> {
        Box::new(Self { exceeded: Some(exceeded), ..*Self::new(at, "") })
    }

    pub(crate) fn with_hint(mut self: Box<Self>, hint: impl Into<Advice>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// The same fault as seen from the object that holds `key`.
    pub(crate) fn inside_key(mut self: Box<Self>, key: &str) -> Box<Self> {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{}{joint}{}", shorten(key), self.field);
        self
    }

    /// The same fault as seen from the array that holds element `index`.
    pub(crate) fn inside_index(mut self: Box<Self>, index: usize) -> Box<Self> {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("[{index}]{joint}{}", self.field);
        self
    }

    /// The same fault in a longer text in which the walked one begins at `offset`.
    pub(crate) fn further_by(mut self: Box<Self>, offset: usize) -> Box<Self> {
        self.at += offset;
        self
    }

    /// The fault as an error of `source`, whose `text`, beginning on `line`, was walked.
    pub(crate) fn into_error(self, source: &Source, line: usize, text: &str) -> ReadError {
        let before = text.as_bytes().get(..self.at).unwrap_or_default();
        let line = line + memchr::memchr_iter(b'\n', before).count();
        if let Some(exceeded) = self.exceeded {
            let field = if self.field.is_empty() { String::new() } else { format!(", `{}`", self.field) };
            return ReadError::memory(source.path(), format!("line {line}{field}"), exceeded);
        }
        let field = if self.field.is_empty() { ".".to_owned() } else { self.field };
        let error = source.record(line, field, self.problem);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// `name`, cut when a hostile file made it long.
pub(crate) fn shorten(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
