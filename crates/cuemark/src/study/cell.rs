//! What the process of one cell is asked.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::matrix::{Ended, OpenedNearness, WorkOptions, work};
use cuemark_core::Progress;
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile};
use cuemark_train::RunFile;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::device::cpu;
use crate::nearness::nearness;

/// Fills one cell of a study: trains, answers, scores.
///
/// A study hands it to the process that it starts for the cell, as `job.json` in the cell's folder; anybody can hand it over
/// again to see why a cell failed: `cuemark bench --cell out/NAME/cells/CELL/job.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillCell {
    /// The cell's folder, whose `cell.json` says what it is about.
    pub folder: Utf8PathBuf,
    /// What to compute on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    pub device: String,
    /// Replace a run of other settings.
    #[serde(default)]
    pub force: bool,
}

impl FillCell {
    /// The cell in `folder`, on the CPU.
    pub fn new(folder: impl Into<Utf8PathBuf>) -> Self {
        Self { folder: folder.into(), device: cpu(), force: false }
    }

    /// Reads a job that [`FillCell::write`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read or is no job.
    pub fn read(path: &Utf8Path) -> Result<Self> {
        let text = Source::new(path).text()?;
        Ok(serde_json::from_str(&text).map_err(|error| ReadError::file(path, error.to_string()))?)
    }

    /// Writes the job as `job.json` of its folder, in place of an earlier one; where it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> Result<Utf8PathBuf, ReadError> {
        let path = self.folder.join("job.json");
        let mut file = WholeFile::create(&path, Overwrite::Force)?;
        file.put_json(self)?;
        file.put(b"\n")?;
        file.finish()?;
        Ok(path)
    }

    /// Does what is left to do. Stopped, it keeps what is finished and says so.
    ///
    /// # Errors
    /// Whatever training, answering and scoring can say.
    pub fn run(&self, progress: &Progress) -> Result<Ended> {
        let device = cuemark_tensor::device(&self.device)?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        Ok(work(&self.folder, &WorkOptions { device, overwrite, nearness: opened }, progress)?)
    }
}

/// What the run of a cell compares queries and videos by.
fn opened(run: &RunFile, progress: &Progress) -> OpenedNearness {
    nearness(run, progress).map_err(Into::into)
}
