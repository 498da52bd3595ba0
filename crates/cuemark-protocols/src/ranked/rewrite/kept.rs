//! Answers on disk, so that nobody is asked the same twice and a stopped run goes on where it was.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{ReadError, Source};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::ask::Question;
use crate::Result;

/// Answers by what was asked: `answers.jsonl`, one line each, written as they come.
#[derive(Debug)]
pub struct KeptAnswers {
    place: Option<(Utf8PathBuf, Mutex<File>)>,
    known: FxHashMap<String, String>,
    damaged: usize,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// What tells the question from all others.
    question: String,
    /// Who was asked.
    by: String,
    qid: String,
    attempt: usize,
    temperature: f64,
    /// The sentence.
    query: String,
}

impl KeptAnswers {
    /// Nothing is known, and nothing kept.
    pub fn nowhere() -> Self {
        Self { place: None, known: FxHashMap::default(), damaged: 0 }
    }

    /// Those of a file, which is made where there is none.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(path: &Utf8Path) -> Result<Self> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path).map_err(io)?;
        let (mut known, mut damaged) = (FxHashMap::default(), 0);
        Source::new(path).for_each_line(|_, text| {
            // A line that was cut off when somebody pulled the plug is a question that will be asked again.
            match serde_json::from_str::<Line>(text) {
                Ok(line) => drop(known.insert(line.question, line.query)),
                Err(_) => damaged += 1,
            }
            Ok(())
        })?;
        // What comes next must not be glued to such a line.
        let mut last = [b'\n'];
        if file.metadata().map_err(io)?.len() > 0 {
            file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(io)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n").map_err(io)?;
        }
        Ok(Self { place: Some((path.to_owned(), Mutex::new(file))), known, damaged })
    }

    /// How many there were to begin with.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Lines of the file that could not be read; what they answered is asked again.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    pub(super) fn find(&self, question: &str) -> Option<String> {
        self.known.get(question).cloned()
    }

    /// Adds one, in one write.
    pub(super) fn keep(&self, digest: &str, by: &str, question: &Question<'_>, answer: &str) -> Result<()> {
        let Some((path, file)) = &self.place else { return Ok(()) };
        let line = Line {
            question: digest.to_owned(),
            by: by.to_owned(),
            qid: question.qid.to_owned(),
            attempt: question.attempt,
            temperature: question.temperature,
            query: answer.to_owned(),
        };
        let write = || -> std::io::Result<()> {
            let text = serde_json::to_string(&line)? + "\n";
            file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes())
        };
        Ok(write().map_err(|source| ReadError::Write { path: path.clone(), source })?)
    }
}
