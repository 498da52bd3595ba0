//! Holding a published checkpoint to a method.

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_models::registry;
use cuemark_models::weights::{Checkpoint, Fit, Sizes};
use cuemark_tensor::Device;
use cuemark_train::{RunFile, TrainError};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Says, name by name, whether a checkpoint is one of a method: nothing is trained, and nothing in the file is run.
///
/// Sizes are those of the run file, else the ones that the file's own shapes tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct LoadCheckpoint {
    /// The method's name.
    #[cfg_attr(feature = "clap", arg(id = "model", value_name = "NAME"))]
    pub model: String,
    /// A safetensors or PyTorch file.
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    pub checkpoint: Utf8PathBuf,
    /// A run file that says how large the network is. Default: as large as the file's shapes tell
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RUN"))]
    pub config: Option<Utf8PathBuf>,
    /// Parameters whose names begin so may be absent; may be repeated.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PREFIX"))]
    pub allow_missing: Vec<String>,
}

/// How a checkpoint and a method go together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadedCheckpoint {
    /// The method's name.
    pub model: String,
    /// Whether every name is accounted for.
    pub whole: bool,
    /// Width of a clip's features.
    pub visual: usize,
    /// Width of a word vector.
    pub words: usize,
    /// The network's settings.
    pub settings: toml::Table,
    /// What stood before every name and was dropped.
    pub dropped_prefixes: Vec<&'static str>,
    /// Name by name.
    #[serde(flatten)]
    pub fit: Fit,
}

impl LoadCheckpoint {
    /// Of the method called `model`, everything by default.
    pub fn new(model: impl Into<String>, checkpoint: impl Into<Utf8PathBuf>) -> Self {
        Self { model: model.into(), checkpoint: checkpoint.into(), config: None, allow_missing: Vec::new() }
    }

    /// Reads the file and compares.
    ///
    /// # Errors
    /// When there is no such method, the run file is another method's, or the file is damaged or no checkpoint. A file that does
    /// not fit is an answer, not an error.
    pub fn run(&self, _: &Progress) -> Result<LoadedCheckpoint> {
        let card = registry::find(&self.model).map_err(TrainError::from)?;
        let run = self.config.as_deref().map(|path| RunFile::read(path, &[])).transpose()?;
        if let Some(run) = run.as_ref().filter(|run| run.model != card.name) {
            return Err(Error::setting("config", format!("is a run of `{}`, not of `{}`", run.model, card.name)));
        }
        let checkpoint = Checkpoint::read(&self.checkpoint, card, &Device::Cpu).map_err(TrainError::from)?;
        let found = checkpoint.shapes();
        let sizes = match run {
            Some(run) => Sizes::of_file_as(card, run.settings, &found),
            None => Sizes::of_file(card, &found),
        };
        let sizes = sizes.map_err(TrainError::from)?;
        let wanted = sizes.shapes(card).map_err(TrainError::from)?;
        let fit = Fit::of(&wanted, &found, &self.allow_missing);
        Ok(LoadedCheckpoint {
            model: card.name.to_owned(),
            whole: fit.is_whole(),
            visual: sizes.given.visual,
            words: sizes.given.words,
            settings: sizes.settings,
            dropped_prefixes: checkpoint.dropped,
            fit,
        })
    }
}
