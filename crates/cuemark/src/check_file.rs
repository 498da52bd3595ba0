//! A look at one's own annotations.

use camino::Utf8PathBuf;
use cuemark_core::text::thousands;
use cuemark_core::{Advise as _, Dialect, Progress, Truth};
use cuemark_data::{TRUTH_FIELDS, TruthFormat};
use cuemark_formats::{StrangeKey, strange_keys};
use serde::{Deserialize, Serialize};

use crate::{Note, Result, TruthFile, TruthReading};

/// Checks a truth file of one's own: can it be read, as what, and what in it cannot be right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckFile {
    /// The file.
    pub path: Utf8PathBuf,
    /// How to read it.
    #[serde(default)]
    pub reading: TruthReading,
}

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedFile {
    /// The file.
    pub path: Utf8PathBuf,
    /// Its layout; `None` when it is of no known one.
    pub layout: Option<String>,
    /// Queries.
    pub queries: usize,
    /// Videos.
    pub videos: usize,
    /// Moments.
    pub moments: usize,
    /// Why it cannot be read, with line and field, and what to do.
    pub problem: Option<String>,
    /// Rows and fields that cannot be right or are not there: how many, the first, what `eval` would do about them.
    pub notes: Vec<Note>,
}

impl CheckedFile {
    /// Whether nothing was found.
    pub fn is_ok(&self) -> bool {
        self.problem.is_none() && self.notes.is_empty()
    }
}

impl CheckFile {
    /// Reads the file and looks at every row.
    ///
    /// # Errors
    /// When there is no such file or layout; what is wrong inside the file is in the answer.
    pub fn run(&self, progress: &Progress) -> Result<CheckedFile> {
        let file = TruthFile { path: self.path.clone(), reading: self.reading.clone() };
        let source = file.source(progress);
        let named = self.reading.layout()?;
        // A file that is not there is an error, not a finding.
        source.head(1)?;
        let layout = named.map_or_else(|| TruthFormat::of(&source).ok(), Some).map(|format| format.name().to_owned());
        let mut found = CheckedFile {
            path: self.path.clone(),
            layout,
            queries: 0,
            videos: 0,
            moments: 0,
            problem: None,
            notes: Vec::new(),
        };
        match file.reading.read(&source) {
            Ok(split) => {
                found.queries = split.queries.len();
                found.videos = split.videos.len();
                found.moments = split.queries.iter().map(|truth| truth.moments.len()).sum();
                found.notes = file.notes(&source, &split);
                found
                    .notes
                    .extend(lacking(self.path.as_str(), &split.queries).into_iter().map(|note| note.located(&source)));
            }
            Err(error) => {
                let message = cuemark_core::whole_message(&error);
                let advice = error.advice_in(Dialect::Terminal).map_or(String::new(), |advice| format!(" ({advice})"));
                found.problem = Some(format!("{message}{advice}"));
                for StrangeKey { key, meant, count, line } in strange_keys(&source, TRUTH_FIELDS)? {
                    let text = format!("unknown field `{key}` on {}; did you mean `{meant}`?", lines(count));
                    found.notes.push(Note { line: Some(line), ..Note::new(self.path.as_str(), count, text) });
                }
            }
        }
        Ok(found)
    }
}

fn lines(count: usize) -> String {
    cuemark_core::text::counted(count, "line", "lines")
}

/// What queries lack that metrics, baselines or people want.
fn lacking(file: &str, truths: &[Truth]) -> Vec<Note> {
    /// What it lacks, and whether a query does.
    type Lack = (&'static str, fn(&Truth) -> bool);
    let lacks: [Lack; 4] = [
        ("have no moment; recall leaves them out", |truth| truth.moments.is_empty()),
        ("have no sentence; nothing can be joined by it", |truth| truth.query.text.trim().is_empty()),
        ("name no video", |truth| truth.video.is_none() && truth.moments.is_empty()),
        ("state no duration; discounted recall and baselines need one", |truth| {
            truth.video.is_some() && truth.duration().is_none()
        }),
    ];
    let note = |(what, is_lacking): (&str, fn(&Truth) -> bool)| {
        let mut found = truths.iter().filter(|truth| is_lacking(truth));
        let first = found.next()?;
        let count = 1 + found.count();
        let text = format!("{} of {} queries {what}", thousands(count), thousands(truths.len()));
        Some(Note::new(file, count, text).first_at(&first.query.id))
    };
    lacks.into_iter().filter_map(note).collect()
}
