//! A published result, made again: what it needs, three seeds, and *published* beside *ours*.

mod beside;
mod needs;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Progress, Stopped};
use cuemark_formats::Overwrite;
use cuemark_train::{Override, RunFile, RunFolder, Start, TrainOptions, train};
use serde::{Deserialize, Serialize};

use crate::device::cpu;
use crate::nearness::nearness;
use crate::train::overrides;
use crate::{Error, Result, run_files};

pub use beside::BesideFigure;
pub use needs::{Need, Standing};

/// Trains a method as published and puts what it reaches beside what papers print.
///
/// Annotations and features are held to their cards first; where something is missing the answer says what, and where it is to be
/// had, and nothing is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Reproduce {
    /// The method, as `cuemark models list` names it.
    #[cfg_attr(feature = "clap", arg(value_name = "METHOD"))]
    pub method: String,
    /// The dataset, as `cuemark data list` names it.
    #[cfg_attr(feature = "clap", arg(value_name = "DATASET"))]
    pub dataset: String,
    /// The folder of run files.
    #[serde(default = "runs")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR", default_value_t = runs()))]
    pub runs: Utf8PathBuf,
    /// Where the annotations lie. Default: as the run file says
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub root: Option<Utf8PathBuf>,
    /// Where the clip features lie. Default: as the run file says
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STORE"))]
    pub features: Option<Utf8PathBuf>,
    /// Set a key of the run file, such as `data.words=glove.txt`; may be repeated.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE"))]
    pub set: Vec<String>,
    /// How many seeds are trained, from the run file's own upwards.
    #[serde(default = "seeds")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = seeds()))]
    pub seeds: u64,
    /// Say what is needed and train nothing.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub check: bool,
    /// Train although annotations or features are other than published; the answer says how.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub anyway: bool,
    /// What to compute on: cpu, cuda, cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
    /// The folder of the runs, which are taken up where they were left. Default: out/reproduce/METHOD-DATASET
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "DIR"))]
    pub out: Option<Utf8PathBuf>,
}

fn runs() -> Utf8PathBuf {
    "runs".into()
}

fn seeds() -> u64 {
    3
}

/// What is needed, and what was reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduced {
    /// The method.
    pub method: String,
    /// The dataset.
    pub dataset: String,
    /// The run file.
    pub run_file: Utf8PathBuf,
    /// Everything that the run reads.
    pub needs: Vec<Need>,
    /// Whether it could be trained.
    pub ready: bool,
    /// The runs; empty where nothing was trained.
    pub runs: Vec<ReproducedRun>,
    /// Published beside ours; empty where nothing was trained or nobody published anything.
    pub figures: Vec<BesideFigure>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReproducedRun {
    /// Its seed.
    pub seed: u64,
    /// Its folder.
    pub folder: Utf8PathBuf,
    /// Steps.
    pub steps: usize,
    /// Best score on the validation split, a fraction.
    pub best: Option<f64>,
}

impl Reproduce {
    /// A method on a dataset, three seeds.
    pub fn new(method: impl Into<String>, dataset: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            dataset: dataset.into(),
            runs: runs(),
            root: None,
            features: None,
            set: Vec::new(),
            seeds: seeds(),
            check: false,
            anyway: false,
            device: cpu(),
            out: None,
        }
    }

    /// Checks, trains and compares. Stopped, it is taken up by the same request.
    ///
    /// # Errors
    /// When there is no such method, dataset or run file, something that is there cannot be read, or it was stopped. What is missing
    /// is an answer.
    pub fn run(&self, progress: &Progress) -> Result<Reproduced> {
        let device = cuemark_tensor::device(&self.device)?;
        let (run_file, mut run) = self.run_file()?;
        progress.phase("checking", 0);
        let mut needs = needs::of(&run, progress)?;
        needs::say_what_rows_are(&mut run, &needs);
        let printed = beside::printed(&self.method, &self.dataset)?;
        let mut notes = Vec::new();
        let asked = beside::splits(&run, &printed, &mut needs, &mut notes);
        let missing = needs.iter().any(|need| need.standing == Standing::Missing);
        let differs = needs.iter().any(|need| need.standing == Standing::Differs);
        let ready = !missing && (!differs || self.anyway);
        let mut done = Reproduced {
            method: self.method.clone(),
            dataset: self.dataset.clone(),
            run_file,
            needs,
            ready,
            runs: Vec::new(),
            figures: Vec::new(),
            notes,
        };
        if !ready || self.check {
            return Ok(done);
        }
        let folder =
            self.out.clone().unwrap_or_else(|| format!("out/reproduce/{}-{}", self.method, self.dataset).into());
        let mut trained = Vec::new();
        let first = run.train.seed;
        for seed in first..first.saturating_add(self.seeds.max(1)) {
            run.train.seed = seed;
            let folder = RunFolder::new(folder.join(format!("seed{seed}")));
            let is_begun = folder.path().join("run.toml").is_file();
            let start = if is_begun { Start::Resume } else { Start::Fresh(Overwrite::Never) };
            let nearness = nearness(&run, progress)?;
            let options = TrainOptions { device: device.clone(), folder: folder.clone(), start, nearness };
            let outcome = train(&run, &options, progress)?;
            if outcome.stopped {
                return Err(Stopped.into());
            }
            let (steps, best) = (outcome.steps, outcome.best);
            done.runs.push(ReproducedRun { seed, folder: folder.path().to_owned(), steps, best });
            trained.push(folder);
        }
        done.figures = beside::figures(&trained, &printed, &asked, &device, progress)?;
        if done.figures.is_empty() {
            done.notes.push(format!("no paper that we keep prints a figure of {} on {}", self.method, self.dataset));
        }
        Ok(done)
    }

    /// The run file of the method on the dataset, with what the request sets.
    fn run_file(&self) -> Result<(Utf8PathBuf, RunFile)> {
        cuemark_models::registry::find(&self.method).map_err(cuemark_train::TrainError::from)?;
        let path = self.runs.join(&self.method).join(format!("{}.toml", self.dataset));
        if !run_files::is_there(&path) {
            let folder = self.runs.join(&self.method);
            let there = run_files::names_in(&folder);
            let advice = match there.is_empty() {
                true => Advice::say("say where run files lie: ").set_any("runs", "DIR"),
                false => Advice::say(format!("there are: {}", there.join(", "))),
            };
            let problem = format!("there is no run file of `{}` on `{}`: {path}", self.method, self.dataset);
            return Err(Error::nothing(problem).advise(advice));
        }
        let mut set = overrides(&self.set)?;
        let over = |key: &str, path: &Utf8Path| Override {
            key: key.to_owned(),
            value: toml::Value::from(path.as_str()).to_string(),
            origin: format!("the setting `{key}`"),
        };
        set.extend(self.root.as_deref().map(|root| over("data.root", root)));
        set.extend(self.features.as_deref().map(|features| over("data.features", features)));
        let run = run_files::read(&path, &set)?;
        Ok((path, run))
    }
}
