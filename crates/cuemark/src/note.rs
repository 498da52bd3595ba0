//! What a reader of the numbers should know about the files they come from.

use std::fmt;

use cuemark_core::text::thousands;
use cuemark_core::{QueryId, RowCounts, RowFault, RowPolicy};
use cuemark_formats::{Source, line_of, query_on};
use serde::{Serialize, Serializer};

/// Something that a reader of the numbers should know: what, how often, where first, and what was done about it.
///
/// As text and as JSON it is one sentence with its file and its first place.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The file, or the argument that stands for one; empty for what concerns no single file.
    pub file: String,
    /// How many rows, lists or queries it is about.
    pub count: usize,
    /// What is the matter and what was done, `count` included.
    pub text: String,
    /// The first line that it is about, from 1, in layouts that have lines.
    pub line: Option<usize>,
    /// The first query that it is about.
    pub query: Option<QueryId>,
}

impl Note {
    /// About `count` rows of `file`.
    pub fn new(file: impl Into<String>, count: usize, text: impl Into<String>) -> Self {
        Self { file: file.into(), count, text: text.into(), line: None, query: None }
    }

    /// The same with the first query that it is about.
    #[must_use]
    pub fn first_at(mut self, query: &QueryId) -> Self {
        self.query = Some(query.clone());
        self
    }

    /// The same with the line of its query, or the query of its line, looked up in the file; what is not found is not said.
    #[must_use]
    pub fn located(mut self, source: &Source) -> Self {
        match (&self.query, self.line) {
            (Some(query), None) => self.line = line_of(source, query.as_str()).ok().flatten(),
            (None, Some(line)) => self.query = query_on(source, line).ok().flatten().map(QueryId::new),
            _ => {}
        }
        self
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        f.write_str(&self.text)?;
        match (self.line, &self.query) {
            (Some(line), Some(query)) => write!(f, " (first: line {line}, query `{query}`)"),
            (Some(line), None) => write!(f, " (first: line {line})"),
            (None, Some(query)) => write!(f, " (first: query `{query}`)"),
            (None, None) => Ok(()),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whose rows were counted: what is done about a fault differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsOf {
    /// A truth file read under this policy.
    Truth(RowPolicy),
    /// A prediction file: its rows always keep their rank.
    Predictions,
}

/// What was wrong with the rows of `file`, a note per fault.
pub fn row_notes(file: &str, rows: &RowCounts, of: RowsOf) -> Vec<Note> {
    let note = |(fault, count): (RowFault, usize)| {
        let text = format!("{} {}; {}", thousands(count), what(fault, of, count), done(fault, of));
        Note { line: rows.first_line(fault), ..Note::new(file, count, text) }
    };
    rows.iter().map(note).collect()
}

fn what(fault: RowFault, of: RowsOf, count: usize) -> String {
    let spans = match (of, count) {
        (RowsOf::Truth(_), 1) => "true span",
        (RowsOf::Truth(_), _) => "true spans",
        (RowsOf::Predictions, 1) => "predicted span",
        (RowsOf::Predictions, _) => "predicted spans",
    };
    let (one, many) = match fault {
        RowFault::Reversed => ("ends before it starts", "end before they start"),
        RowFault::Empty => ("has no length", "have no length"),
        RowFault::StartsBeforeVideo => ("starts before the video", "start before the video"),
        RowFault::StartsAfterVideo => ("starts after its video ends", "start after their video ends"),
        RowFault::EndsAfterVideo => ("ends after its video", "end after their video"),
        RowFault::Repeated => ("repeats an earlier row, times and words", "repeat an earlier row, times and words"),
    };
    format!("{spans} {}", if count == 1 { one } else { many })
}

fn done(fault: RowFault, of: RowsOf) -> &'static str {
    match (of, fault) {
        (RowsOf::Predictions, RowFault::Reversed) => "reversed spans keep their rank and hit nothing",
        (RowsOf::Predictions, RowFault::StartsBeforeVideo) => "changed to start at 0",
        (RowsOf::Predictions, _) | (RowsOf::Truth(RowPolicy::Error), _) | (_, RowFault::Repeated) => "kept as they are",
        (RowsOf::Truth(RowPolicy::Skip), _) => "left out",
        (RowsOf::Truth(_), RowFault::Reversed) => "start and end are swapped",
        (RowsOf::Truth(_), RowFault::StartsBeforeVideo) => "changed to start at 0",
        (RowsOf::Truth(RowPolicy::Clamp), RowFault::StartsAfterVideo | RowFault::EndsAfterVideo) => {
            "clipped to the video"
        }
        (RowsOf::Truth(_), _) => "kept as they are",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_how_often_where_and_what_was_done() {
        let mut rows = RowCounts::default();
        for _ in 0..3 {
            rows.count(RowFault::Reversed);
            rows.place(2);
        }
        let source = Source::in_memory("mine.jsonl", &b"{\"qid\": 1}\n{\"qid\": 7441}\n"[..]);
        let notes = row_notes("mine.jsonl", &rows, RowsOf::Predictions);
        let said: Vec<String> = notes.into_iter().map(|note| note.located(&source).to_string()).collect();
        assert_eq!(
            said,
            ["mine.jsonl: 3 predicted spans end before they start; reversed spans keep their rank and hit nothing \
              (first: line 2, query `7441`)"]
        );
    }

    #[test]
    fn what_was_done_follows_the_policy() {
        let mut rows = RowCounts::default();
        rows.count(RowFault::EndsAfterVideo);
        let said = |policy| row_notes("t", &rows, RowsOf::Truth(policy)).remove(0).to_string();
        assert_eq!(said(RowPolicy::Keep), "t: 1 true span ends after its video; kept as they are");
        assert_eq!(said(RowPolicy::Clamp), "t: 1 true span ends after its video; clipped to the video");
        assert_eq!(said(RowPolicy::Skip), "t: 1 true span ends after its video; left out");
    }
}
