//! Parting a dataset into splits.

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_protocols::splits::{SplitManifest, SplitProtocol, SplitRecipe, dataset_inputs, write_folder};
use serde::{Deserialize, Serialize, Serializer};

use crate::{NamedDataset, Result, dataset_notes};

/// Parts a dataset into train, val and test, with a manifest beside them.
///
/// ```no_run
/// use cuemark::{MakeSplits, NamedDataset, Progress, SplitProtocol};
/// # fn main() -> cuemark::Result<()> {
/// let dataset = NamedDataset::new("charades-sta", "data/charades-sta");
/// let made = MakeSplits::new(SplitProtocol::Cd, dataset, "splits").run(&Progress::new())?;
/// for split in &made.manifest.outcome.splits {
///     println!("{}: {} queries", split.name, split.queries);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct MakeSplits {
    /// How.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub recipe: SplitRecipe,
    /// Of what.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub dataset: NamedDataset,
    /// The folder to write.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub out: Utf8PathBuf,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// The splits that were written. As JSON: their manifest.
#[derive(Debug, Clone)]
pub struct WrittenSplits {
    /// Their folder.
    pub out: Utf8PathBuf,
    /// What they were made from, how, and what came of it; it lies beside them.
    pub manifest: SplitManifest,
}

impl MakeSplits {
    /// `dataset` parted by `protocol` as it is usually told.
    pub fn new(protocol: SplitProtocol, dataset: NamedDataset, out: impl Into<Utf8PathBuf>) -> Self {
        Self { recipe: SplitRecipe::new(protocol), dataset, out: out.into(), force: false }
    }

    /// Reads the dataset, parts it and writes the splits, the folder whole or not at all. Says what is not there and what was
    /// wrong with the rows.
    ///
    /// # Errors
    /// When the folder is there and may not be replaced (before anything is read), and those of reader and protocol.
    pub fn run(&self, progress: &Progress) -> Result<WrittenSplits> {
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.out)?;
        let dataset = self.dataset.load(progress)?;
        dataset_notes(&dataset).into_iter().for_each(|note| progress.say(note));
        progress.phase("splitting", 0);
        let made = self.recipe.part(&dataset, progress)?;
        let inputs = dataset_inputs(&dataset)?;
        let manifest = write_folder(&made, dataset.card.name, inputs, &self.out, overwrite)?;
        Ok(WrittenSplits { out: self.out.clone(), manifest })
    }
}

impl Serialize for WrittenSplits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.manifest.serialize(serializer)
    }
}
