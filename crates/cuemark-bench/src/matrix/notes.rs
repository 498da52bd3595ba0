//! The notes that a cell's folder keeps about itself: `cell.json`, `trained.json`, `done.json`.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, Source, WholeFile};
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cell::{Cell, CellTest};
use crate::{BenchError, Result};

/// What training came to so far: `trained.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TrainedNote {
    /// Fingerprint of what it depends on.
    pub(crate) print: String,
    /// Whether it is at its end.
    pub(crate) done: bool,
    /// Trainable parameters.
    pub(crate) parameters: Option<u64>,
    /// Steps made.
    pub(crate) steps: usize,
    /// Best score on the validation split.
    pub(crate) best: Option<f64>,
    /// **Seconds** of all sessions that ended in order.
    pub(crate) seconds: f64,
}

/// What was tested so far: `done.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DoneNote {
    /// Fingerprint of the training that answered.
    pub(crate) training: String,
    /// Tests by name.
    pub(crate) tests: IndexMap<String, TestNote>,
    /// **Seconds** of all sessions that ended in order.
    pub(crate) seconds: f64,
    /// The most memory that the process had, in MiB; `None` where the system does not say.
    pub(crate) peak_mib: Option<u64>,
}

/// A test that was answered and scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TestNote {
    /// Fingerprint of what it depends on.
    pub(crate) print: String,
    /// The file below `evaluations/`.
    pub(crate) evaluation: String,
}

impl TrainedNote {
    pub(crate) fn read(folder: &Utf8Path) -> Result<Option<Self>> {
        read(&folder.join("trained.json"))
    }

    pub(crate) fn write(&self, folder: &Utf8Path) -> Result<()> {
        write(&folder.join("trained.json"), self)
    }
}

impl DoneNote {
    pub(crate) fn read(folder: &Utf8Path) -> Result<Option<Self>> {
        read(&folder.join("done.json"))
    }

    pub(crate) fn write(&self, folder: &Utf8Path) -> Result<()> {
        write(&folder.join("done.json"), self)
    }

    /// Whether `test` was answered by the same model and its evaluation is still there.
    pub(crate) fn holds(&self, folder: &Utf8Path, test: &CellTest, print: &str) -> bool {
        let note = self.tests.get(&test.name).filter(|note| note.print == print);
        note.is_some_and(|note| evaluation(folder, &note.evaluation).is_file())
    }

    pub(crate) fn keep(&mut self, test: &CellTest, print: String, evaluation: String) {
        self.tests.insert(test.name.clone(), TestNote { print, evaluation });
    }

    /// Forgets tests that are no longer asked.
    pub(crate) fn keep_only(&mut self, tests: &[CellTest]) {
        self.tests.retain(|name, _| tests.iter().any(|test| test.name == *name));
    }
}

/// Where an evaluation lies.
pub(crate) fn evaluation(folder: &Utf8Path, name: &str) -> Utf8PathBuf {
    folder.join("evaluations").join(name)
}

/// Whether everything that the cell asks is there.
pub(super) fn is_done(cell: &Cell, folder: &Utf8Path) -> Result<bool> {
    let Some(done) = DoneNote::read(folder)? else { return Ok(false) };
    let same = done.training == cell.training_print();
    Ok(same && cell.tests.iter().all(|test| done.holds(folder, test, &cell.test_print(test))))
}

/// The cell that a folder is about.
pub(super) fn read_cell(folder: &Utf8Path) -> Result<Cell> {
    let missing = || BenchError::Cell { folder: folder.to_owned(), problem: "holds no `cell.json`".to_owned() };
    read(&folder.join("cell.json"))?.ok_or_else(missing)
}

/// Says in its folder what the cell is about.
pub(super) fn write_cell(cell: &Cell, folder: &Utf8Path) -> Result<()> {
    write(&folder.join("cell.json"), cell)
}

fn read<T: DeserializeOwned>(path: &Utf8Path) -> Result<Option<T>> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = Source::new(path).text()?;
    let broken = |error: serde_json::Error| BenchError::Cell { folder: path.to_owned(), problem: error.to_string() };
    serde_json::from_str(&text).map(Some).map_err(broken)
}

pub(super) fn write(path: &Utf8Path, value: &impl Serialize) -> Result<()> {
    let broken = |error: serde_json::Error| BenchError::Cell { folder: path.to_owned(), problem: error.to_string() };
    let mut text = serde_json::to_string_pretty(value).map_err(broken)?;
    text.push('\n');
    Ok(WholeFile::write_all_to(path, Overwrite::Force, text.as_bytes())?)
}
