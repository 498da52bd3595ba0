//! The queries that a request works on.

use camino::Utf8PathBuf;
use cuemark_core::Truth;
use cuemark_data::{ReadOptions, TruthFormat, read_truth};
use cuemark_formats::Source;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A file of queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Queries {
    /// The queries, in any truth layout.
    #[cfg_attr(feature = "clap", arg(id = "in", long = "in", value_name = "FILE"))]
    pub path: Utf8PathBuf,
    /// Their layout, when the content does not tell; `cuemark data list --formats` names them.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(id = "truth_format", long = "truth-format", value_name = "FORMAT"))]
    pub format: Option<String>,
}

impl Queries {
    /// The file at `path`, whose layout its content tells.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into(), format: None }
    }

    /// Reads them, in the file's order.
    ///
    /// # Errors
    /// When the layout is unknown, or as its reader says.
    pub fn read(&self) -> Result<Vec<Truth>> {
        let format = self.format.as_deref().map(str::parse::<TruthFormat>).transpose()?;
        Ok(read_truth(&Source::new(&self.path), format, &ReadOptions::default())?.queries)
    }
}
