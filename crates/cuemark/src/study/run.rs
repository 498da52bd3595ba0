//! Running a study.

use camino::Utf8PathBuf;
use cuemark_bench::leaderboard::{self, RunsFile};
use cuemark_bench::matrix::{Account, MatrixFile, expand};
use cuemark_core::Progress;
use serde::{Deserialize, Serialize, Serializer};

use super::opened::{Study, WrittenStudy};
use crate::device::cpu;
use crate::{Result, Shard};

/// Runs a matrix: datasets × protocols × models × features × seeds.
///
/// Every cell is a run folder below `OUT/cells` and runs in a process of its own. What is done is skipped, what was begun is
/// resumed, a cell that fails is said in the answer while the others go on. Stopping saves everything; the same request goes
/// on. Datasets whose files are not here are left out and said so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStudy {
    /// The matrix: a TOML file, or the name of a ready one ([`cuemark_bench::matrix::matrices`]).
    pub matrix: Utf8PathBuf,
    /// Where and how.
    #[serde(default)]
    pub settings: StudySettings,
    /// The `cuemark` program that fills the cells, and words that stand before its own (`python -m cuemark`). Default: the
    /// one that is found on the path
    #[serde(default)]
    pub program: Vec<String>,
}

/// Where and how a matrix is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct StudySettings {
    /// The matrix's folder. Default: out/NAME, or out/NAME-quick
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub out: Option<Utf8PathBuf>,
    /// A small version: a world of a hundred films, one epoch, one seed.
    #[cfg_attr(feature = "clap", arg(long))]
    pub quick: bool,
    /// Cells side by side. Default: one per core
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..)))]
    pub jobs: Option<u16>,
    /// Memory that all cells together may have, such as 4GiB. Default: four fifths of what is free
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", value_parser = bytes))]
    pub memory: Option<u64>,
    /// What to compute on: cpu, cuda, cuda:N.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
    /// Fill only this share of the cells, 1/4 to 4/4; several machines may fill shares of one folder at a time. Each leaves
    /// results-K-of-N.json, and results.json of all shares that are there.
    #[cfg_attr(feature = "clap", arg(long, value_name = "K/N", default_value = "1/1", hide_default_value = true))]
    pub shard: Shard,
    /// Replace what is there already.
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

#[cfg(feature = "clap")]
fn bytes(text: &str) -> Result<u64, String> {
    cuemark_bench::matrix::parse_bytes(text).ok_or_else(|| "a size such as 4GiB or 800M".to_owned())
}

impl Default for StudySettings {
    fn default() -> Self {
        Self { out: None, quick: false, jobs: None, memory: None, device: cpu(), shard: Shard::WHOLE, force: false }
    }
}

/// What became of a study.
#[derive(Debug, Clone, Serialize)]
pub struct RanStudy {
    /// The matrix's name.
    pub matrix: String,
    /// Its folder: `cells/`, `data/`, `account.json`, `results.json`, `report/`.
    pub out: Utf8PathBuf,
    /// What became of every cell.
    pub account: Account,
    /// The matrix's own share of the time; `None` when no cell ran.
    pub overhead: Option<f64>,
    /// The report, when one could be written.
    pub report: Option<Utf8PathBuf>,
    /// The figures of every finished cell. As JSON: the runs alone.
    #[serde(rename = "results", serialize_with = "runs_alone")]
    pub figures: RunsFile,
    /// Whether results and report could be written.
    #[serde(skip)]
    pub written: bool,
}

// serde hands over a reference to the field.
fn runs_alone<S: Serializer>(figures: &RunsFile, serializer: S) -> Result<S::Ok, S::Error> {
    figures.results.serialize(serializer)
}

impl RunStudy {
    /// The matrix of that name or file, as it stands.
    pub fn new(matrix: impl Into<Utf8PathBuf>) -> Self {
        Self { matrix: matrix.into(), settings: StudySettings::default(), program: Vec::new() }
    }

    /// Reads the matrix and lists its cells; nothing is made yet.
    ///
    /// # Errors
    /// When the matrix or a run file says what cannot be.
    pub fn open(&self) -> Result<Study> {
        // A name that is no device is said now, not by every cell.
        cuemark_tensor::device(&self.settings.device)?;
        let matrix = MatrixFile::read(&self.matrix)?;
        let matrix = if self.settings.quick { matrix.quickened() } else { matrix };
        let ending = if self.settings.quick { "-quick" } else { "" };
        let out = self.settings.out.clone().unwrap_or_else(|| format!("out/{}{ending}", matrix.name).into());
        let expanded = expand(&matrix, &out)?.share(|place| self.settings.shard.takes(place));
        let program = if self.program.is_empty() { vec!["cuemark".to_owned()] } else { self.program.clone() };
        Ok(Study { matrix, expanded, out, settings: self.settings.clone(), program })
    }

    /// Makes the data, fills the cells, writes results and report. Stopped, it says what is left.
    ///
    /// # Errors
    /// As [`RunStudy::open`]; when data cannot be made or the folder cannot be written.
    pub fn run(&self, progress: &Progress) -> Result<RanStudy> {
        let study = self.open()?;
        for absent in &study.expanded.absent {
            progress.say(format!("left out: {}: {}", absent.what, absent.why));
        }
        study.prepare(progress)?;
        let account = study.fill(progress)?;
        let WrittenStudy { figures, report, whole, .. } = study.write(&account, progress);
        let overhead = account.overhead();
        Ok(RanStudy { matrix: study.matrix.name, out: study.out, account, overhead, report, figures, written: whole })
    }
}

impl RanStudy {
    /// Whether every cell is done and everything could be written.
    pub fn is_whole(&self) -> bool {
        self.account.is_complete() && self.written
    }

    /// The leaderboard in Markdown; empty when no cell is done.
    pub fn table(&self) -> String {
        leaderboard::table(std::slice::from_ref(&self.figures))
    }
}
