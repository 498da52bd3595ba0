//! Holding a published checkpoint to a method.

use std::fmt;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_models::registry;
use cuemark_models::weights::{Checkpoint, Fit, Parameter, Sizes};
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

/// What does not fit, a line each, and how much does.
impl fmt::Display for LoadedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fit = &self.fit;
        let all = |parameters: &[Parameter], verdict: &str| -> Vec<[String; 3]> {
            parameters.iter().map(|p| [p.name.clone(), by(&p.shape), verdict.to_owned()]).collect()
        };
        let mut rows = all(&fit.missing, "missing in the file");
        rows.extend(all(&fit.allowed, "missing, as allowed"));
        rows.extend(all(&fit.extra, "extra: the network has none of that name"));
        rows.extend(fit.misshaped.iter().map(|one| {
            [one.name.clone(), by(&one.found), format!("misshaped: the network wants {}", by(&one.wanted))]
        }));
        if !rows.is_empty() {
            rows.insert(0, ["parameter", "shape", ""].map(str::to_owned));
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1)];
        for [name, shape, verdict] in &rows {
            let line = format!("{name:0$}  {shape:1$}  {verdict}", widths[0], widths[1]);
            writeln!(f, "{}", line.trim_end())?;
        }
        if !self.dropped_prefixes.is_empty() {
            writeln!(f, "dropped before every name: {}", self.dropped_prefixes.join(", "))?;
        }
        let [taken, missing, extra] = [fit.taken.len(), fit.missing.len(), fit.extra.len()];
        let verdict = if self.whole { "a checkpoint of" } else { "NOT a checkpoint of" };
        write!(
            f,
            "{taken} taken, {missing} missing, {extra} extra, {} misshaped: {verdict} {} (features {} wide, words {})",
            fit.misshaped.len(),
            self.model,
            self.visual,
            self.words
        )
    }
}

/// `512 × 256`, or `one number`.
fn by(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "one number".to_owned();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")
}
