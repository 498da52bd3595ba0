//! Answering queries with a trained model, or without looking at a video.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Predictions, Progress, Split};
use cuemark_features::FeatureVariant;
use cuemark_formats::{
    Overwrite, PredictionFormat, PredictionOptions, Source, WholeFile, read_predictions, write_predictions,
};
use cuemark_protocols::baselines::{self, Needs, Training};
use cuemark_train::{Among, CutQueries, DataConfig, FirstStage, OutOfReach, PredictOptions, RunFolder, Trained};
use serde::{Deserialize, Serialize};

use crate::dataset_folder::rows_note;
use crate::device::cpu;
use crate::{Error, PublishedModel, Result, TruthReading};

/// Answers per query of a baseline.
const BASELINE_ANSWERS: usize = 5;

/// Answers queries with a trained model, or without looking at a video, and writes an ordinary prediction file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Predict {
    /// The folder of a run that `cuemark train` made.
    #[serde(default)]
    #[cfg_attr(
        feature = "clap",
        arg(
            id = "run",
            value_name = "RUN_DIR",
            required_unless_present_any = ["baseline", "checkpoint"],
            conflicts_with_all = ["baseline", "checkpoint"]
        )
    )]
    pub run_folder: Option<Utf8PathBuf>,
    /// Which baseline.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", requires = "truth", value_parser = clap::builder::PossibleValuesParser::new(baselines::BASELINES.iter().map(|card| card.name))))]
    pub baseline: Option<String>,
    /// A checkpoint that somebody else trained.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub published: Option<PublishedModel>,
    /// What is asked of a trained model.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub model: AskModel,
    /// What is right: our JSONL, or any dataset's own file; `.gz` and `.zst` are read as they are.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub truth: Option<Utf8PathBuf>,
    /// How to read it.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub reading: TruthReading,
    /// The training split of a baseline, in any truth layout.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", conflicts_with = "run"))]
    pub train: Option<Utf8PathBuf>,
    /// Where to write the predictions.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub out: Utf8PathBuf,
    /// Answers per query; baselines draw so many.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub answers: Option<usize>,
    /// Seed of what a baseline draws.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0, conflicts_with = "run"))]
    pub seed: u64,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// What is asked of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AskModel {
    /// A split of the run's data, such as test-iid.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SPLIT", conflicts_with_all = ["baseline", "truth"]))]
    pub split: Option<String>,
    /// Where each query is searched.
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub among: Among,
    /// Look only into the videos that another model's predictions name for each query, with its scores: a list of videos
    /// (VR) or of moments, as `predict --among split` writes them.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", conflicts_with = "baseline"))]
    pub first_stage: Option<Utf8PathBuf>,
    /// Videos that are taken of each list of the first stage.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 40, requires = "first_stage"))]
    pub first_stage_videos: usize,
    /// Features of the videos, when they are not in the run's store.
    #[cfg_attr(feature = "clap", arg(long, value_name = "STORE", conflicts_with = "baseline"))]
    pub features: Option<Utf8PathBuf>,
    /// Cut videos into stretches of so many seconds, half overlapping.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", conflicts_with = "baseline"))]
    pub window: Option<f64>,
    /// What the model is shown instead of the video.
    #[cfg_attr(feature = "clap", arg(long, value_enum, conflicts_with = "baseline"))]
    pub blind: Option<FeatureVariant>,
    /// What to compute on: cpu, cuda, cuda:N.
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE", default_value = "cpu"))]
    pub device: String,
}

/// What was answered, and where the answers lie.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WrittenPredictions {
    /// By a trained model.
    Model {
        /// Its name.
        model: String,
        /// The split that was answered.
        split: String,
        /// Queries.
        queries: usize,
        /// Moments that no answer of the model could meet.
        out_of_reach: OutOfReach,
        /// Queries of which the model read only the beginning.
        cut: CutQueries,
        /// The prediction file.
        out: Utf8PathBuf,
    },
    /// By a baseline.
    Baseline {
        /// Its name.
        baseline: String,
        /// Queries.
        queries: usize,
        /// The seed of what it drew.
        seed: u64,
        /// The prediction file.
        out: Utf8PathBuf,
    },
}

impl Default for AskModel {
    fn default() -> Self {
        Self {
            split: None,
            among: Among::default(),
            first_stage: None,
            first_stage_videos: 40,
            features: None,
            window: None,
            blind: None,
            device: cpu(),
        }
    }
}

impl Predict {
    /// A trained model's answers to a split of its data.
    pub fn with_run(run_folder: impl Into<Utf8PathBuf>, split: impl Into<String>, out: impl Into<Utf8PathBuf>) -> Self {
        let model = AskModel { split: Some(split.into()), ..AskModel::default() };
        Self { run_folder: Some(run_folder.into()), model, ..Self::to(out.into()) }
    }

    /// A baseline's answers to a truth file; most learn where moments lie from [`Predict::train`].
    pub fn with_baseline(
        baseline: impl Into<String>,
        truth: impl Into<Utf8PathBuf>,
        out: impl Into<Utf8PathBuf>,
    ) -> Self {
        Self { baseline: Some(baseline.into()), truth: Some(truth.into()), ..Self::to(out.into()) }
    }

    /// A published checkpoint's answers to a truth file.
    pub fn with_checkpoint(
        published: PublishedModel,
        truth: impl Into<Utf8PathBuf>,
        out: impl Into<Utf8PathBuf>,
    ) -> Self {
        Self { published: Some(published), truth: Some(truth.into()), ..Self::to(out.into()) }
    }

    fn to(out: Utf8PathBuf) -> Self {
        Self {
            run_folder: None,
            baseline: None,
            published: None,
            model: AskModel::default(),
            truth: None,
            reading: TruthReading::default(),
            train: None,
            out,
            answers: None,
            seed: 0,
            force: false,
        }
    }

    /// Answers and writes the file.
    ///
    /// # Errors
    /// When the request names nobody who answers or nothing to answer, the file is there and may not be replaced, and those of
    /// the model, the baseline and the readers.
    pub fn run(&self, progress: &Progress) -> Result<WrittenPredictions> {
        self.overwrite().check(&self.out)?;
        match (&self.run_folder, &self.baseline, &self.published) {
            (Some(run), None, None) => self.by_run(run, progress),
            (None, Some(baseline), None) => self.by_baseline(baseline, progress),
            (None, None, Some(published)) => self.by_checkpoint(published, progress),
            (_, Some(_), _) => Err(Error::setting("baseline", "a model answers already: one or the other")),
            (Some(_), None, Some(_)) => Err(Error::setting("checkpoint", "a run answers already: one or the other")),
            (None, None, None) => {
                let advice = Advice::say("name a run folder, a ").setting("checkpoint").and(" or a ");
                Err(Error::nothing("there is nobody to answer").advise(advice.setting("baseline")))
            }
        }
    }

    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Force } else { Overwrite::Never }
    }

    fn by_run(&self, run: &Utf8PathBuf, progress: &Progress) -> Result<WrittenPredictions> {
        let device = cuemark_tensor::device(&self.model.device)?;
        self.check_asked()?;
        progress.phase("opening", 0);
        let mut trained = Trained::open(&RunFolder::new(run), &device)?;
        if let Some(note) = &trained.note {
            progress.say(format!("note: {note}"));
        }
        if let Some(features) = &self.model.features {
            trained.run.data.features = Some(features.clone());
        }
        let split = self.asked(&trained.run.data)?;
        self.by_model(&trained, split, progress)
    }

    fn by_checkpoint(&self, published: &PublishedModel, progress: &Progress) -> Result<WrittenPredictions> {
        let device = cuemark_tensor::device(&self.model.device)?;
        self.check_asked()?;
        progress.phase("opening", 0);
        let read = published.read(self.model.features.as_deref(), self.truth.as_deref(), &device)?;
        let split = self.asked(read.data())?;
        let trained = read.open(&split, &device, progress)?;
        self.by_model(&trained, split, progress)
    }

    /// That there is something to answer.
    fn check_asked(&self) -> Result<()> {
        if self.model.split.is_none() && self.truth.is_none() {
            let advice = Advice::say("pass ").set_any("split", "NAME").and(" or ").set_any("truth", "FILE");
            return Err(Error::nothing("what shall it answer?").advise(advice));
        }
        Ok(())
    }

    /// The queries to answer.
    fn asked(&self, data: &DataConfig) -> Result<Split> {
        match (&self.model.split, &self.truth) {
            (None, Some(truth)) => self.reading.read(&Source::new(truth)),
            (split, _) => Ok(data.split(split.as_deref().unwrap_or_default())?),
        }
    }

    fn by_model(&self, trained: &Trained, split: Split, progress: &Progress) -> Result<WrittenPredictions> {
        let asked = &self.model;
        let options = PredictOptions {
            answers: self.answers.unwrap_or(trained.run.eval.answers),
            batch: trained.run.eval.batch,
            among: asked.among,
            window: asked.window,
            variant: asked.blind.unwrap_or_default(),
        };
        let first = match &asked.first_stage {
            Some(path) => {
                let (_, predictions) = read_predictions(&Source::new(path), &PredictionOptions::default())?;
                Some(FirstStage::of(&predictions, asked.first_stage_videos))
            }
            None => None,
        };
        progress.phase("answering", 0);
        let predicted = trained.predict_after(&split, &options, first.as_ref(), progress)?;
        self.write(&predicted.predictions)?;
        Ok(WrittenPredictions::Model {
            model: trained.run.model.clone(),
            queries: split.queries.len(),
            split: split.name,
            out_of_reach: predicted.out_of_reach,
            cut: predicted.cut,
            out: self.out.clone(),
        })
    }

    fn by_baseline(&self, baseline: &str, progress: &Progress) -> Result<WrittenPredictions> {
        let card = baselines::find(baseline)?;
        let Some(truth) = &self.truth else {
            let advice = Advice::say("pass ").set_any("truth", "FILE");
            return Err(Error::nothing("a baseline answers a truth file").advise(advice));
        };
        if card.needs != Needs::Nothing && self.train.is_none() {
            let advice = Advice::say("pass ").set_any("train", "FILE");
            return Err(Error::nothing(format!("`{}` learns where moments lie", card.name)).advise(advice));
        }
        progress.phase("reading", 0);
        let split = self.reading.read(&Source::new(truth))?;
        rows_note(truth, &split.rows).into_iter().for_each(|note| progress.say(note));
        let train = match &self.train {
            Some(path) => {
                let train = cuemark_data::read_truth(&Source::new(path), None, &self.reading.options()?)?;
                rows_note(path, &train.rows).into_iter().for_each(|note| progress.say(note));
                train.queries
            }
            None => Vec::new(),
        };
        progress.phase("answering", 0);
        let fitted = card.fit(&Training::of(&train))?;
        let predictions = fitted.predict(&split.queries, self.answers.unwrap_or(BASELINE_ANSWERS), self.seed)?;
        self.write(&predictions)?;
        Ok(WrittenPredictions::Baseline {
            baseline: card.name.to_owned(),
            queries: split.queries.len(),
            seed: self.seed,
            out: self.out.clone(),
        })
    }

    fn write(&self, predictions: &Predictions) -> Result<()> {
        let mut file = WholeFile::create(&self.out, self.overwrite())?;
        // A file called `.csv` or `.trec` is one; every other is our own.
        let asked = PredictionFormat::of_name(&self.out);
        let format = asked.filter(|format| matches!(format, PredictionFormat::Csv | PredictionFormat::Trec));
        write_predictions(predictions, format.unwrap_or(PredictionFormat::Cuemark), &mut file)?;
        Ok(file.finish()?)
    }
}
