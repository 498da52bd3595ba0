//! A report on prediction files.

use camino::Utf8PathBuf;
use cuemark_bench::report::{
    About, Answerer, Intervals, Measure, QueryText, Report, ReportOptions, Runs, score_baselines,
};
use cuemark_core::{Progress, Truth};
use cuemark_features::FeatureVariant;
use cuemark_formats::Overwrite;
use serde::{Deserialize, Serialize};

use crate::{
    CheckedScoring, Error, Note, PredictionFile, PredictionReading, Result, RowsOf, Scoring, TruthFile, row_notes,
};

/// Scores prediction files with blind baselines beside them, and reports on what they show: tables, trust cards, figures.
///
/// `run` writes `report.html` (one file, opens anywhere, no network), `.md`, `.tex`, `.csv` and `.json` into `out`;
/// [`ReportFiles::add_to`] only scores, for reports that show more than files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportFiles {
    /// What is right.
    pub truth: TruthFile,
    /// The prediction files.
    pub predictions: Vec<Utf8PathBuf>,
    /// How to read them.
    #[serde(default)]
    pub reading: PredictionReading,
    /// What they are called. Default: the files' stems
    #[serde(default)]
    pub models: Vec<String>,
    /// Which metrics, in which conventions. Default: R@1, R@5 and dR@1 at four overlaps and mIoU
    #[serde(default)]
    pub scoring: Scoring,
    /// The training split, in any truth layout: adds blind baselines that learned from it.
    #[serde(default)]
    pub train: Option<Utf8PathBuf>,
    /// The dataset, for its published figures.
    #[serde(default)]
    pub dataset: Option<String>,
    /// How the split was made: standard, cd, centre …
    #[serde(default)]
    pub protocol: Option<String>,
    /// The name of the split. Default: the truth file's stem
    #[serde(default)]
    pub split: Option<String>,
    /// Predictions of the first method for queries whose moments lie elsewhere, and their truth.
    #[serde(default)]
    pub elsewhere: Option<Elsewhere>,
    /// Predictions of the first method with each query's verb masked.
    #[serde(default)]
    pub masked: Option<Utf8PathBuf>,
    /// Predictions of the first method for wrong queries.
    #[serde(default)]
    pub wrong: Option<Utf8PathBuf>,
    /// Predictions of the first method with the videos hidden.
    #[serde(default)]
    pub hidden: Option<Utf8PathBuf>,
    /// The report's title.
    #[serde(default)]
    pub title: String,
    /// Leave intervals out of the tables for papers and wikis.
    #[serde(default)]
    pub no_intervals: bool,
}

/// Predictions for a split with other locations (`test-ood`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// The predictions.
    pub predictions: Utf8PathBuf,
    /// Their truth.
    pub truth: Utf8PathBuf,
}

/// A report that was written.
#[derive(Debug, Clone)]
pub struct ReportedFiles {
    /// What it shows.
    pub report: Report,
    /// Its files.
    pub files: Vec<Utf8PathBuf>,
    /// What a reader of the numbers should know about the files.
    pub notes: Vec<Note>,
}

impl ReportFiles {
    /// A report on `predictions` against `truth`, everything else as usual.
    pub fn new(truth: TruthFile, predictions: Vec<Utf8PathBuf>) -> Self {
        Self {
            truth,
            predictions,
            reading: PredictionReading::default(),
            models: Vec::new(),
            scoring: Scoring::default(),
            train: None,
            dataset: None,
            protocol: None,
            split: None,
            elsewhere: None,
            masked: None,
            wrong: None,
            hidden: None,
            title: String::new(),
            no_intervals: false,
        }
    }

    /// Scores the files and writes the report into the folder `out`.
    ///
    /// # Errors
    /// When a name does not exist, a file cannot be read or does not belong to the truth, or the report cannot be written.
    pub fn run(&self, out: &Utf8PathBuf, overwrite: Overwrite, progress: &Progress) -> Result<ReportedFiles> {
        if self.predictions.is_empty() {
            return Err(Error::setting("predictions", "no prediction file was named"));
        }
        for name in cuemark_bench::report::FILES {
            overwrite.check(&out.join(name))?;
        }
        let mut runs = Runs::default();
        let notes = self.add_to(&mut runs, progress)?;
        let title = match (self.title.as_str(), self.predictions.as_slice()) {
            ("", [only]) => format!("Moment retrieval report: {}", only.file_stem().unwrap_or_default()),
            (title, _) => title.to_owned(),
        };
        let intervals = if self.no_intervals { Intervals::Hidden } else { Intervals::Shown };
        let report = Report::of(runs, ReportOptions { title, intervals, ..ReportOptions::default() })?;
        let files = report.write(out, overwrite)?;
        Ok(ReportedFiles { report, files, notes })
    }

    /// Scores every file, what was brought beside the first, and the baselines.
    ///
    /// # Errors
    /// When a name does not exist, or a file cannot be read or does not belong to the truth.
    pub fn add_to(&self, runs: &mut Runs, progress: &Progress) -> Result<Vec<Note>> {
        let scoring = self.scoring.check::<&str>(&[])?.headline();
        let source = self.truth.source(progress);
        let split = self.truth.reading.read(&source)?;
        let mut notes = self.truth.notes(&source, &split);
        let stem = self.truth.path.file_stem().unwrap_or("test").trim_end_matches(".jsonl").to_owned();
        let usual = if self.elsewhere.is_some() { "test-iid".to_owned() } else { stem };
        let about = About {
            kind: Answerer::File,
            dataset: self.dataset.clone().unwrap_or_default(),
            protocol: self.protocol.clone().unwrap_or_default(),
            split: self.split.clone().unwrap_or(usual),
            ..About::default()
        };
        let named = |n: usize, path: &Utf8PathBuf| {
            self.models.get(n).cloned().unwrap_or_else(|| path.file_stem().unwrap_or("predictions").to_owned())
        };
        let mut scorer = Scorer { scoring: &scoring, request: self, runs, notes: &mut notes };
        for (n, path) in self.predictions.iter().enumerate() {
            scorer.score(path, About { model: named(n, path), ..about.clone() }, &split.queries, progress)?;
        }
        let Some(first) = self.predictions.first().map(|path| named(0, path)) else { return Ok(notes) };
        for (path, text) in [(&self.masked, QueryText::MaskVerb), (&self.wrong, QueryText::WrongQuery)] {
            if let Some(path) = path {
                let about = About { model: first.clone(), text, ..about.clone() };
                scorer.score(path, about, &split.queries, progress)?;
            }
        }
        if let Some(path) = &self.hidden {
            let about = About { model: first.clone(), footage: FeatureVariant::Zeroed, ..about.clone() };
            scorer.score(path, about, &split.queries, progress)?;
        }
        let train = self.train.as_ref().map(|path| self.another(path, scorer.notes, progress)).transpose()?;
        let train = train.unwrap_or_default();
        scorer.baselines(&about, &split.queries, &train, progress)?;
        if let Some(Elsewhere { predictions, truth }) = &self.elsewhere {
            let other = self.another(truth, scorer.notes, progress)?;
            let about = About { model: first, split: "test-ood".to_owned(), ..about };
            scorer.score(predictions, about.clone(), &other, progress)?;
            scorer.baselines(&about, &other, &train, progress)?;
        }
        Ok(notes)
    }

    /// Another truth file, whose layout its content tells.
    fn another(&self, path: &Utf8PathBuf, notes: &mut Vec<Note>, progress: &Progress) -> Result<Vec<Truth>> {
        let mut file = TruthFile { path: path.clone(), reading: self.truth.reading.clone() };
        file.reading.format = None;
        let source = file.source(progress);
        let split = file.reading.read(&source)?;
        notes.extend(file.notes(&source, &split));
        Ok(split.queries)
    }
}

/// Scores one file after the other.
struct Scorer<'a> {
    scoring: &'a CheckedScoring,
    request: &'a ReportFiles,
    runs: &'a mut Runs,
    notes: &'a mut Vec<Note>,
}

impl Scorer<'_> {
    fn score(&mut self, path: &Utf8PathBuf, about: About, truths: &[Truth], progress: &Progress) -> Result<()> {
        let file = PredictionFile { path: path.clone(), reading: self.request.reading.clone() };
        let source = file.source(progress);
        let predictions = file.reading.read(&source)?.answering(truths);
        let rows = row_notes(path.as_str(), &predictions.rows, RowsOf::Predictions);
        let odd = self.scoring.belonging(truths, &predictions, path.as_str())?;
        self.notes.extend(rows.into_iter().chain(odd).map(|note| note.located(&source)));
        let measure = self.measure(truths);
        self.runs.add(measure.run(about, truths, &predictions, progress)?, truths);
        Ok(())
    }

    fn baselines(&mut self, about: &About, truths: &[Truth], train: &[Truth], progress: &Progress) -> Result<()> {
        add_baselines(about, truths, train, &self.measure(truths), self.runs, progress)
    }

    /// What was asked for; without metrics or preset, what reports usually show.
    fn measure(&self, truths: &[Truth]) -> Measure {
        let Scoring { metrics, preset, .. } = &self.request.scoring;
        let asked = metrics.is_some() || preset.is_some();
        let plan = asked.then(|| self.scoring.plan(truths, &cuemark_core::Predictions::default()));
        Measure { plan, ..Measure::default() }
    }
}

/// Adds blind baselines. They need each query's own video and its duration; where those are not known the report does
/// without.
///
/// # Errors
/// When a metric cannot be computed, or `progress` was stopped.
pub fn add_baselines(
    about: &About,
    truths: &[Truth],
    train: &[Truth],
    measure: &Measure,
    runs: &mut Runs,
    progress: &Progress,
) -> Result<()> {
    let timed = |truth: &Truth| truth.duration().is_some_and(|duration| duration > 0.0 && duration.is_finite());
    if !truths.iter().chain(train).all(timed) || truths.iter().any(|truth| truth.pool.is_some()) {
        return Ok(());
    }
    for baseline in score_baselines(about, truths, train, measure, 0, progress)? {
        runs.add(baseline, truths);
    }
    Ok(())
}
