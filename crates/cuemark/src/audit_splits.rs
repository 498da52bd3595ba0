//! What a set of splits shares, and what guesses reach on it.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_protocols::splits::audit::{self, AuditReport};
use cuemark_protocols::splits::read_folder;
use serde::{Deserialize, Serialize, Serializer};

use crate::Result;

/// Looks at a set of splits: what its parts share, how far apart they lie, and what guesses reach on each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AuditSplits {
    /// A folder with train.jsonl, val.jsonl, test-iid.jsonl, test-ood.jsonl or test.jsonl.
    pub dir: Utf8PathBuf,
    /// Draw heat maps, length histograms and verb bars as SVG files in this folder.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub plots: Option<Utf8PathBuf>,
    /// Seed of resampling and draws.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// What was found. As JSON: the report alone.
#[derive(Debug, Clone)]
pub struct AuditedSplits {
    /// The findings.
    pub report: AuditReport,
    /// The pictures that were drawn.
    pub drawn: Vec<Utf8PathBuf>,
}

impl AuditSplits {
    /// The splits in a folder, nothing drawn.
    pub fn new(dir: impl AsRef<Utf8Path>) -> Self {
        Self { dir: dir.as_ref().to_owned(), plots: None, seed: 0, force: false }
    }

    /// Reads, audits and draws.
    ///
    /// # Errors
    /// When there is no split or one cannot be read, durations are lacking, a picture cannot be written, or it was stopped.
    pub fn run(&self, progress: &Progress) -> Result<AuditedSplits> {
        progress.phase("reading", 0);
        let splits = read_folder(&self.dir, progress)?;
        progress.phase("auditing", 0);
        let report = audit::audit(&splits, self.seed, progress)?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        let drawn = match &self.plots {
            Some(folder) => audit::draw(&splits, folder, overwrite)?,
            None => Vec::new(),
        };
        Ok(AuditedSplits { report, drawn })
    }
}

impl Serialize for AuditedSplits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.report.serialize(serializer)
    }
}
