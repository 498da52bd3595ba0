//! A model whose weights somebody else trained, as one that answers.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Progress, Split};
use cuemark_models::registry;
use cuemark_models::weights::{Checkpoint, Sizes};
use cuemark_tensor::Device;
use cuemark_train::{DataConfig, Override, RunFile, TrainError, Trained};
use serde::{Deserialize, Serialize};

use crate::train::overrides;
use crate::{Error, LoadedCheckpoint, Result};

/// A published checkpoint: its parameters carry the names of the authors' code, and every one of them must fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PublishedModel {
    /// The method whose checkpoint answers.
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "model",
            id = "published_model",
            value_name = "NAME",
            required = false,
            requires = "checkpoint",
            conflicts_with = "baseline"
        )
    )]
    pub model: String,
    /// A checkpoint of that method that somebody else trained: safetensors or PyTorch, under the names of the authors' code.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", required = false, requires = "published_model"))]
    pub checkpoint: Utf8PathBuf,
    /// A run file that says how large its network is and where words come from. Default: as large as the file's shapes tell.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RUN", requires = "checkpoint"))]
    pub config: Option<Utf8PathBuf>,
    /// Set a key of the run file, such as `data.words=glove.txt`; may be repeated.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE", requires = "checkpoint"))]
    pub set: Vec<String>,
    /// Parameters whose names begin so may be absent from the checkpoint and are drawn anew; may be repeated.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PREFIX", requires = "checkpoint"))]
    pub allow_missing: Vec<String>,
}

/// A checkpoint with the run that its network belongs to.
pub(crate) struct ReadModel<'a> {
    asked: &'a PublishedModel,
    run: RunFile,
    checkpoint: Checkpoint,
}

impl PublishedModel {
    /// A checkpoint of the method called `model`, as large as its own shapes tell.
    pub fn new(model: impl Into<String>, checkpoint: impl Into<Utf8PathBuf>) -> Self {
        let (model, checkpoint) = (model.into(), checkpoint.into());
        Self { model, checkpoint, config: None, set: Vec::new(), allow_missing: Vec::new() }
    }

    /// Reads the file and decides how large the network is; `features` and `truth` stand in for what a run file would name.
    pub(crate) fn read(
        &self,
        features: Option<&Utf8Path>,
        truth: Option<&Utf8Path>,
        device: &Device,
    ) -> Result<ReadModel<'_>> {
        let card = registry::find(&self.model).map_err(TrainError::from)?;
        let mut set = overrides(&self.set)?;
        if let Some(features) = features {
            set.push(over("data.features", features.as_str()));
        }
        let run = match &self.config {
            Some(path) => {
                let run = RunFile::read(path, &set)?;
                if run.model != card.name {
                    let problem = format!("is a run of `{}`, not of `{}`", run.model, card.name);
                    return Err(Error::setting("config", problem));
                }
                Some(run)
            }
            None if features.is_none() => {
                let advice = Advice::say("pass ").set_any("features", "STORE").and(" or ").set_any("config", "RUN");
                return Err(Error::nothing("where are the features of the videos?").advise(advice));
            }
            None => None,
        };
        let checkpoint = Checkpoint::read(&self.checkpoint, card, device).map_err(TrainError::from)?;
        let run = match run {
            Some(run) => run,
            None => {
                let sizes = Sizes::of_file(card, &checkpoint.shapes()).map_err(TrainError::from)?;
                run_of(card.name, sizes.settings, truth, &set)?
            }
        };
        Ok(ReadModel { asked: self, run, checkpoint })
    }
}

/// A run that is never trained: the network of a checkpoint, and the data that it answers.
fn run_of(model: &str, mut settings: toml::Table, truth: Option<&Utf8Path>, set: &[Override]) -> Result<RunFile> {
    settings.insert("name".to_owned(), model.into());
    let mut data = toml::Table::new();
    if let Some(truth) = truth {
        data.insert("train".to_owned(), truth.as_str().into());
    }
    // A file of any name may be answered; nothing is chosen on it.
    let train = toml::Table::from_iter([("epochs".to_owned(), 1.into()), ("rate".to_owned(), 1.0.into())]);
    let sections = [("model", settings), ("data", data), ("train", train)];
    let table = sections.map(|(name, section)| (name.to_owned(), section.into()));
    Ok(RunFile::from_table("the checkpoint's run", toml::Table::from_iter(table), set)?)
}

fn over(key: &str, value: &str) -> Override {
    // Quoted, so that a path is text whatever it looks like.
    Override {
        key: key.to_owned(),
        value: toml::Value::from(value).to_string(),
        origin: format!("the setting `{key}`"),
    }
}

impl ReadModel<'_> {
    /// What the run says about data.
    pub(crate) fn data(&self) -> &DataConfig {
        &self.run.data
    }

    /// The model that answers `asked`; a checkpoint that does not fit is refused with its table.
    pub(crate) fn open(self, asked: &Split, device: &Device, progress: &Progress) -> Result<Trained> {
        let Self { asked: PublishedModel { checkpoint: path, config, allow_missing, .. }, run, checkpoint } = self;
        // A run of ours knows the words of its training queries. Without one, every word that is asked is looked up.
        let train = match config {
            Some(_) => match run.data.split(&run.data.train) {
                Ok(train) => Some(train),
                Err(error) => {
                    progress.say(format!(
                        "note: words are those of the queries asked; the training split is not there: {error}"
                    ));
                    None
                }
            },
            None => None,
        };
        let learnt_from = &train.as_ref().unwrap_or(asked).queries;
        let (model, settings) = (run.model.clone(), run.settings.clone());
        let dropped_prefixes = checkpoint.dropped;
        let opened = Trained::of_weights(run, learnt_from, checkpoint.tensors, allow_missing, device)?;
        opened.trained.ok_or_else(|| {
            let loaded = LoadedCheckpoint {
                model,
                whole: false,
                visual: opened.visual,
                words: opened.words,
                settings,
                dropped_prefixes,
                fit: opened.fit,
            };
            Error::Checkpoint { path: path.to_string(), loaded: Box::new(loaded) }
        })
    }
}
