//! Training a model.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_train::{Override, RunFolder, Start, TrainOptions, train};
use serde::{Deserialize, Serialize};

use crate::device::cpu;
use crate::nearness::nearness;
use crate::{Error, Result, run_files};

/// Sections of a run file that variables of the environment may set.
const SECTIONS: [&str; 4] = ["model", "data", "train", "eval"];

/// Trains what a run file describes; a stopped run is resumed as if nothing had happened.
///
/// Settings come from the run file, then from `variables`, then from `set`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Train {
    /// The run file; `runs/METHOD/DATASET.toml` comes with the program.
    #[cfg_attr(feature = "clap", arg(id = "run", value_name = "RUN"))]
    pub run_file: Utf8PathBuf,
    /// What to compute on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
    /// The run's folder. Default: out/MODEL-FILE-seedN
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub out: Option<Utf8PathBuf>,
    /// Set a key of the run file, such as `train.epochs=5`; may be repeated.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE"))]
    pub set: Vec<String>,
    /// Go on with the run in the folder.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "force"))]
    pub resume: bool,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
    /// Variables of the environment that may set keys: `CUEMARK_TRAIN_CLIP_NORM=5` is `train.clip_norm = 5`, others count for
    /// nothing. The program hands over its own ([`Train::with_environment`]); a request that says nothing has none.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub variables: BTreeMap<String, String>,
}

/// How a training ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainedRun {
    /// The model's name.
    pub model: String,
    /// The run's folder: run file, log, checkpoints, answers to the validation split.
    pub folder: Utf8PathBuf,
    /// The seed of everything random.
    pub seed: u64,
    /// Steps made in all, earlier sessions included.
    pub steps: usize,
    /// Best score on the validation split, a fraction.
    pub best: Option<f64>,
    /// The step of the best score.
    pub best_step: usize,
    /// The validation split.
    pub val: String,
    /// Whether somebody stopped it; the same request with `resume` goes on.
    pub stopped: bool,
    /// Whether `train.minutes` ended it before its last epoch.
    pub out_of_time: bool,
    /// **Seconds** of this session.
    pub seconds: f64,
    /// Share of the steps' time that was spent waiting for data.
    pub waiting: f64,
}

impl Train {
    /// The run that a file describes, from the beginning, on the CPU.
    pub fn new(run_file: impl Into<Utf8PathBuf>) -> Self {
        Self {
            run_file: run_file.into(),
            device: cpu(),
            out: None,
            set: Vec::new(),
            resume: false,
            force: false,
            variables: BTreeMap::new(),
        }
    }

    /// The same with the variables of this process.
    #[must_use]
    pub fn with_environment(mut self) -> Self {
        // A variable that is no text cannot be one of ours.
        let text =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        self.variables.extend(text.filter(|(name, _)| key_of(name).is_some()));
        self
    }

    /// Trains to the end, or until stopped, which saves everything and is no error.
    ///
    /// # Errors
    /// When the run file or a setting says what cannot be, something the run needs is missing, or the folder cannot be written.
    pub fn run(&self, progress: &Progress) -> Result<TrainedRun> {
        let run = run_files::read(&self.run_file, &self.overrides()?)?;
        let folder = RunFolder::new(self.out.clone().unwrap_or_else(|| {
            let stem = self.run_file.file_stem().unwrap_or("run");
            format!("out/{}-{stem}-seed{}", run.model, run.train.seed).into()
        }));
        let start = match (self.resume, self.force) {
            (true, _) => Start::Resume,
            (false, true) => Start::Fresh(Overwrite::Force),
            (false, false) => Start::Fresh(Overwrite::Never),
        };
        let options = TrainOptions {
            device: cuemark_tensor::device(&self.device)?,
            folder: folder.clone(),
            start,
            nearness: nearness(&run, progress)?,
        };
        let outcome = train(&run, &options, progress)?;
        Ok(TrainedRun {
            folder: folder.path().to_owned(),
            seed: run.train.seed,
            steps: outcome.steps,
            best: outcome.best,
            best_step: outcome.best_step,
            val: run.data.val,
            stopped: outcome.stopped,
            out_of_time: outcome.out_of_time,
            seconds: outcome.seconds,
            waiting: outcome.waiting,
            model: run.model,
        })
    }

    /// What is laid over the run file, in order.
    fn overrides(&self) -> Result<Vec<Override>> {
        let of = |(name, value): (&String, &String)| {
            Some(Override { key: key_of(name)?, value: value.clone(), origin: name.clone() })
        };
        let mut found: Vec<Override> = self.variables.iter().filter_map(of).collect();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.extend(overrides(&self.set)?);
        Ok(found)
    }
}

/// `KEY=VALUE` settings as what is laid over a run file.
pub(crate) fn overrides(set: &[String]) -> Result<Vec<Override>> {
    let of = |set: &String| {
        let Some((key, value)) = set.split_once('=') else {
            return Err(Error::setting("set", format!("`{set}` is not KEY=VALUE")));
        };
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        Ok(Override { key, value, origin: format!("the setting `{set}`") })
    };
    set.iter().map(of).collect()
}

/// The key of a run file that a variable sets.
fn key_of(variable: &str) -> Option<String> {
    let rest = variable.strip_prefix("CUEMARK_")?.to_lowercase();
    let section = SECTIONS.iter().find(|section| rest.starts_with(&format!("{section}_")))?;
    Some(format!("{section}.{}", &rest[section.len() + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_win_over_variables_and_variables_of_others_count_for_nothing() {
        let mut train = Train::new("run.toml");
        train.set = vec!["train.epochs = 5".to_owned()];
        for (name, value) in [("CUEMARK_TRAIN_EPOCHS", "3"), ("CUEMARK_CACHE", "x"), ("CUEMARK_DATA_VAL", "v")] {
            train.variables.insert(name.to_owned(), value.to_owned());
        }
        let laid: Vec<(String, String)> =
            train.overrides().unwrap().into_iter().map(|over| (over.key, over.value)).collect();
        let expected = [("data.val", "v"), ("train.epochs", "3"), ("train.epochs", "5")];
        assert_eq!(laid, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_setting_without_a_value_is_refused_before_the_run_file_is_read() {
        let mut train = Train::new("gone.toml");
        train.set = vec!["train.epochs".to_owned()];
        let refused = train.run(&Progress::new()).unwrap_err();
        assert!(matches!(refused, Error::Setting { setting: "set", .. }), "{refused}");
    }
}
