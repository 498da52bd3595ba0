//! Saving what is left of a damaged index.

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_search::{EngineUrl, Salvaged, salvage};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Writes a sound index from everything that is left of a damaged one, which is only read.
///
/// Says what is kept, what is lost and why, and what had to be assumed where the head of the log or the manifest cannot be
/// read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SalvageIndex {
    /// The folder of the damaged index.
    #[cfg_attr(feature = "clap", arg(value_name = "INDEX"))]
    pub index: String,
    /// The folder of the new one.
    #[cfg_attr(feature = "clap", arg(long, value_name = "INDEX"))]
    pub out: String,
    /// What made the embeddings, for an index whose manifest does not say so any more.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME|RUN_DIR"))]
    pub encoder: Option<String>,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

impl SalvageIndex {
    /// Reads the one and writes the other.
    ///
    /// # Errors
    /// When there is no log, the new index may not be written there, or somebody is writing to either.
    pub fn run(&self, progress: &Progress) -> Result<Salvaged> {
        let (from, to) = (folder("index", &self.index)?, folder("out", &self.out)?);
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        Ok(salvage(&from, &to, self.encoder.as_deref(), overwrite, progress)?)
    }
}

fn folder(setting: &'static str, address: &str) -> Result<Utf8PathBuf> {
    match address.parse()? {
        EngineUrl::File(folder) => Ok(folder),
        EngineUrl::Milvus { .. } => {
            Err(Error::setting(setting, format!("`{address}` is on a server; only folders can be salvaged")))
        }
    }
}
