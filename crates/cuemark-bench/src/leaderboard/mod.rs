//! Results as data: what a matrix measured, in a file that can be committed, and the table that is made of such files.

mod table;

use camino::Utf8Path;
use cuemark_features::FeatureVariant;
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile};
use cuemark_train::Among;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use crate::committed::{carried, read_folder};
use crate::matrix::{self, Cell, DoneNote, Method, TrainedNote};
use crate::report::{Answerer, Evaluated, QueryText};
use crate::{BenchError, Result};

pub use table::{laid_into, table};

/// The version of the layout.
const VERSION: u32 = 1;

/// The results of a matrix: `results/runs/runs-NAME-DATE.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsFile {
    /// Version of the layout.
    pub runs: u32,
    /// The matrix, or any word.
    pub name: String,
    /// The day, `2026-11-15`.
    pub date: String,
    /// The commit of the program; empty when it is not known.
    #[serde(default)]
    pub commit: String,
    /// The machine, in words.
    #[serde(default)]
    pub machine: String,
    /// Anything else a reader should know.
    #[serde(default)]
    pub note: String,
    /// The share of the matrix that it is about, as `2/4`; `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Files, by their names without the ending, whose runs of the same key give way to the runs of this one. Without being named, two
    /// runs of one key with different figures are an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// Words about datasets, by label.
    #[serde(default)]
    pub datasets: IndexMap<String, AboutDataset>,
    /// One per run.
    pub results: Vec<RunResult>,
}

/// Words about a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AboutDataset {
    /// In a sentence.
    pub about: String,
}

/// What tells one run from another: dataset, protocol, model, variant, features and seed.
pub(crate) type RunKey<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, u64);

/// What one run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The model's or baseline's name.
    pub model: String,
    /// What sets it apart from others of that name.
    #[serde(default)]
    pub variant: String,
    /// The dataset's label.
    pub dataset: String,
    /// Who cut it into splits.
    pub protocol: String,
    /// Its features; empty when it looks at none.
    #[serde(default)]
    pub features: String,
    /// Its seed.
    pub seed: u64,
    /// Who answered.
    pub kind: Answerer,
    /// Trainable parameters.
    #[serde(default)]
    pub parameters: Option<u64>,
    /// **Seconds** of training.
    #[serde(default)]
    pub train_seconds: Option<f64>,
    /// Passes over the training split, all stages.
    #[serde(default)]
    pub epochs: Option<usize>,
    /// **Milliseconds** to answer a query of the first test.
    #[serde(default)]
    pub ms_per_query: Option<f64>,
    /// The most memory that it had, in MiB.
    #[serde(default)]
    pub peak_mib: Option<u64>,
    /// What was asked.
    pub tests: Vec<TestResult>,
}

/// The figures of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestResult {
    /// What it is called.
    pub test: String,
    /// The split.
    pub split: String,
    /// Where each query was searched.
    #[serde(default)]
    pub among: Among,
    /// What was done to the queries.
    #[serde(default)]
    pub text: QueryText,
    /// What was shown.
    #[serde(default)]
    pub footage: FeatureVariant,
    /// Queries.
    pub queries: usize,
    /// Queries without an answer.
    #[serde(default)]
    pub missing: usize,
    /// Metrics by name.
    pub metrics: IndexMap<String, Measure>,
}

/// A metric with its interval, all fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The mean over queries.
    pub value: f64,
    /// The lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl RunResult {
    /// What a cell came to; `None` while it is not done.
    ///
    /// # Errors
    /// When its notes or evaluations are not ours.
    pub fn of_cell(cell: &Cell, folder: &Utf8Path) -> Result<Option<Self>> {
        let Some(done) = DoneNote::read(folder)? else { return Ok(None) };
        let trained = TrainedNote::read(folder)?.unwrap_or_default();
        let (mut tests, mut ms_per_query) = (Vec::new(), None);
        for test in &cell.tests {
            let Some(note) = done.tests.get(&test.name) else { return Ok(None) };
            let evaluated = Evaluated::read(&matrix::evaluation(folder, &note.evaluation))?;
            ms_per_query = ms_per_query.or(evaluated.about.ms_per_query);
            let measure = |(name, measured): (&String, &crate::report::Measured)| {
                let measure = Measure { value: measured.value, low: Some(measured.low), high: Some(measured.high) };
                (name.clone(), measure)
            };
            tests.push(TestResult {
                test: test.name.clone(),
                split: evaluated.about.split.clone(),
                among: test.among,
                text: test.text,
                footage: test.footage,
                queries: evaluated.queries,
                missing: evaluated.missing,
                metrics: evaluated.metrics.iter().map(measure).collect(),
            });
        }
        let epochs = match &cell.by {
            Method::Model { run, .. } => epochs(run),
            Method::TwoStage { .. } | Method::Command(_) | Method::Baseline | Method::Oracle => None,
        };
        Ok(Some(Self {
            model: cell.model.clone(),
            variant: cell.variant.clone(),
            dataset: cell.dataset.clone(),
            protocol: cell.protocol.name().to_owned(),
            features: cell.features.clone(),
            seed: cell.seed,
            kind: cell.by.answerer(),
            parameters: trained.parameters,
            train_seconds: trained.done.then_some(trained.seconds),
            epochs,
            ms_per_query,
            peak_mib: done.peak_mib,
            tests,
        }))
    }

    /// The run's figure for a metric on a split, the queries as they are and each in its own video.
    pub fn plain(&self, split: &str, metric: &str) -> Option<Measure> {
        let plain =
            |test: &&TestResult| test.split == split && (test.among, test.text, test.footage) == Default::default();
        self.tests.iter().find(plain)?.metrics.get(metric).copied()
    }

    /// Whether it is what `cell` comes to.
    pub fn is_of(&self, cell: &Cell) -> bool {
        let Cell { dataset, protocol, model, variant, features, seed, .. } = cell;
        let [dataset, model, variant, features] = [dataset, model, variant, features].map(String::as_str);
        self.key() == (dataset, protocol.name(), model, variant, features, *seed)
    }

    pub(crate) fn key(&self) -> RunKey<'_> {
        (&self.dataset, &self.protocol, &self.model, &self.variant, &self.features, self.seed)
    }
}

fn epochs(run: &str) -> Option<usize> {
    let run = cuemark_train::RunFile::from_table("run.toml", run.parse().ok()?, &[]).ok()?;
    Some(run.train.stages.iter().map(|stage| stage.epochs).sum())
}

impl RunsFile {
    /// Results under a name and a day.
    pub fn new(name: &str, date: String, results: Vec<RunResult>) -> Self {
        Self {
            runs: VERSION,
            name: name.to_owned(),
            date,
            commit: String::new(),
            machine: String::new(),
            note: String::new(),
            shard: None,
            replaces: Vec::new(),
            datasets: IndexMap::new(),
            results,
        }
    }

    /// Reads a file of results.
    ///
    /// # Errors
    /// When it is none, of another version, or has a figure that is no fraction.
    pub fn read(path: &Utf8Path) -> Result<Self> {
        Self::from_source(&Source::new(path))
    }

    pub(crate) fn from_source(source: &Source) -> Result<Self> {
        let text = source.text()?;
        let fault = |problem: String| BenchError::from(source.fault(problem));
        let mut file: Self = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        if file.runs != VERSION {
            return Err(fault(format!("`runs`: {} is a layout that this program does not know", file.runs)));
        }
        // Who looks at no features has been written in two ways; as one, a guess has one row.
        for run in file.results.iter_mut().filter(|run| run.features == "none") {
            run.features.clear();
        }
        for (run, test) in file.results.iter().flat_map(|run| run.tests.iter().map(move |test| (run, test))) {
            for (name, measure) in &test.metrics {
                if !(0.0..=1.0).contains(&measure.value) {
                    return Err(fault(format!(
                        "{} on {}: `{name}`: {} is no fraction",
                        run.model, test.test, measure.value
                    )));
                }
            }
        }
        Ok(file)
    }

    /// Writes it.
    ///
    /// # Errors
    /// When something is there already and may not be replaced, or the disk refuses.
    pub fn write(&self, path: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|error| ReadError::file(path, error))?;
        Ok(WholeFile::write_all_to(path, overwrite, format!("{text}\n").as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn run(model: &str, seed: u64, iid: f64) -> RunResult {
        let measure = Measure { value: iid, low: Some(iid - 0.05), high: Some(iid + 0.05) };
        let test = TestResult {
            test: "test-iid".to_owned(),
            split: "test-iid".to_owned(),
            among: Among::Own,
            text: QueryText::Original,
            footage: FeatureVariant::Seen,
            queries: 10,
            missing: 0,
            metrics: IndexMap::from([("R@1,IoU=0.5".to_owned(), measure)]),
        };
        RunResult {
            model: model.to_owned(),
            variant: String::new(),
            dataset: "world".to_owned(),
            protocol: "own".to_owned(),
            features: "motion".to_owned(),
            seed,
            kind: Answerer::Model,
            parameters: None,
            train_seconds: None,
            epochs: None,
            ms_per_query: None,
            peak_mib: None,
            tests: vec![test],
        }
    }

    pub(super) fn file(results: Vec<RunResult>) -> RunsFile {
        RunsFile::new("test", "2026-11-15".to_owned(), results)
    }

    #[test]
    fn files_read_back_and_refuse_what_is_no_fraction() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let path = folder.join("runs-test-2026-11-15.json");
        let good = file(vec![run("one", 0, 0.2)]);
        good.write(&path, Overwrite::Never).unwrap();
        assert_eq!(read_folder(folder).unwrap(), [good]);
        file(vec![run("one", 0, 53.9)]).write(&path, Overwrite::Force).unwrap();
        assert!(RunsFile::read(&path).unwrap_err().to_string().contains("53.9 is no fraction"));
        std::fs::write(&path, "{\"runs\":9}").unwrap();
        assert!(RunsFile::read(&path).is_err());
    }
}
