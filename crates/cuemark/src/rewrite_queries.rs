//! Queries rewritten so that a model's dependence on their words can be measured.

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_formats::{Overwrite, WholeFile, write_truth};
use cuemark_text::variants::{Mask, QueryText, Variant, VariantReport, apply};
use serde::{Deserialize, Serialize};

use crate::{Error, Queries, Result};

/// Rewrites the queries of a truth file: what a model answers to them, beside what it answers to the original, shows what it
/// makes of their words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RewriteQueries {
    /// What is done to each query.
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub mode: QueryText,
    /// The queries.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub queries: Queries,
    /// Where to write the same truth with rewritten queries, as our JSON lines.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub out: Utf8PathBuf,
    /// What stands in the place of a masked verb; empty drops the verb.
    #[serde(default = "mask")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TOKEN", default_value_t = mask()))]
    pub mask: String,
    /// Seed of what is drawn.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

fn mask() -> String {
    "[MASK]".to_owned()
}

impl RewriteQueries {
    /// The queries of a file, rewritten into another.
    pub fn new(mode: QueryText, queries: Queries, out: impl Into<Utf8PathBuf>) -> Self {
        Self { mode, queries, out: out.into(), mask: mask(), seed: 0, force: false }
    }

    /// Reads, rewrites and writes; how many queries were touched.
    ///
    /// # Errors
    /// When nothing is to be done, the file is there and may not be replaced, no other video has a query to take, and those of
    /// the reader.
    pub fn run(&self, progress: &Progress) -> Result<VariantReport> {
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.out)?;
        let variant = match (self.mode.variant(), self.mask.as_str()) {
            (Some(Variant::MaskVerb(_)), "") => Variant::MaskVerb(Mask::Drop),
            (Some(Variant::MaskVerb(_)), token) => Variant::MaskVerb(Mask::Token(token.to_owned())),
            (Some(variant), _) => variant,
            (None, _) => return Err(Error::setting("mode", "`original` leaves every query as it is")),
        };
        progress.phase("rewriting", 0);
        let (rewritten, report) = apply(&variant, &self.queries.read()?, self.seed)?;
        let mut file = WholeFile::create(&self.out, overwrite)?;
        write_truth(&rewritten, &mut file)?;
        file.finish()?;
        Ok(report)
    }
}
