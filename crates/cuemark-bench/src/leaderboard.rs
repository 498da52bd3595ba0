//! Results as data: what a matrix measured, in a file that can be committed, and the table that is made of such files.

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

/// The version of the layout.
const VERSION: u32 = 1;

/// Where the table stands in a Markdown file.
const BEGIN: &str = "<!-- leaderboard:begin -->";
const END: &str = "<!-- leaderboard:end -->";

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

/// The columns of the table: a split and a metric.
const COLUMNS: [(&str, &str); 4] =
    [("test-iid", "R@1,IoU=0.5"), ("test-iid", "R@1,IoU=0.7"), ("test-iid", "mIoU"), ("test-ood", "R@1,IoU=0.5")];

/// The runs of one section by model, variant and features.
type Rows<'a> = IndexMap<(&'a str, &'a str, &'a str), Vec<&'a RunResult>>;

/// The table of all runs in Markdown, a section per dataset, features and protocol; best test-iid first.
///
/// Percent. With several seeds the mean and the standard deviation over seeds, with one the 95 % interval over queries.
/// Of a run that stands in two files the later one counts; one with no figure of any column is left out. Empty when there is
/// none.
pub fn table(files: &[RunsFile]) -> String {
    let mut latest: IndexMap<_, &RunResult> = IndexMap::new();
    for run in files.iter().flat_map(|file| &file.results) {
        latest.insert(run.key(), run);
    }
    let mut sections: IndexMap<(&str, &str), Rows> = IndexMap::new();
    for run in latest.into_values() {
        let section = sections.entry((&run.dataset, &run.protocol)).or_default();
        section.entry((&run.model, &run.variant, &run.features)).or_default().push(run);
    }
    let mut text = String::new();
    for ((dataset, protocol), rows) in &sections {
        let cell = |runs: &[&RunResult], (split, metric): (&str, &str)| figure(runs, split, metric);
        let columns: Vec<(&str, &str)> =
            COLUMNS.into_iter().filter(|column| rows.values().any(|runs| cell(runs, *column).is_some())).collect();
        if columns.is_empty() {
            continue;
        }
        let about =
            files.iter().rev().find_map(|file| file.datasets.get(*dataset)).map_or("", |about| about.about.as_str());
        let protocol = if *protocol == "own" { String::new() } else { format!(", {protocol}") };
        text += &format!("**{dataset}{protocol}**{}{about}\n\n", if about.is_empty() { "" } else { ": " });
        let heads: Vec<String> = columns.iter().map(|(split, metric)| format!("{split} {metric}")).collect();
        text += &format!(
            "| method | features | seeds | {} |\n|---|---|---|{}\n",
            heads.join(" | "),
            "---|".repeat(columns.len())
        );
        let mut rows: Vec<_> = rows.iter().collect();
        let first = |runs: &[&RunResult]| cell(runs, columns[0]).map_or(-1.0, |(value, _)| value);
        rows.sort_by(|a, b| first(b.1).total_cmp(&first(a.1)).then(a.0.cmp(b.0)));
        for ((model, variant, features), runs) in rows {
            let name = if variant.is_empty() { (*model).to_owned() } else { format!("{model}, {variant}") };
            let cells: Vec<String> =
                columns.iter().map(|column| cell(runs, *column).map_or(String::new(), |(_, words)| words)).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            let seeds = if runs[0].kind == Answerer::Model { runs.len().to_string() } else { String::new() };
            text += &format!("| {name} | {features} | {seeds} | {} |\n", cells.join(" | "));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// The mean over the runs that have the figure, a fraction, and how it is printed.
fn figure(runs: &[&RunResult], split: &str, metric: &str) -> Option<(f64, String)> {
    let found: Vec<Measure> = runs.iter().filter_map(|run| run.plain(split, metric)).collect();
    let mean = found.iter().map(|measure| measure.value).sum::<f64>() / found.len().max(1) as f64;
    match found[..] {
        [] => None,
        [Measure { low: Some(low), high: Some(high), .. }] => {
            Some((mean, format!("{:.1} ({:.1} – {:.1})", 100.0 * mean, 100.0 * low, 100.0 * high)))
        }
        [_] => Some((mean, format!("{:.1}", 100.0 * mean))),
        _ => {
            let squares: f64 = found.iter().map(|measure| (measure.value - mean).powi(2)).sum();
            let sd = (squares / (found.len() - 1) as f64).sqrt();
            Some((mean, format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * sd)))
        }
    }
}

/// `document` with the table between its two markers; `None` when it lacks them.
pub fn laid_into(document: &str, table: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let table = if table.is_empty() { String::new() } else { format!("{table}\n\n") };
    Some(format!("{before}{BEGIN}\n\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(model: &str, seed: u64, iid: f64) -> RunResult {
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

    fn file(results: Vec<RunResult>) -> RunsFile {
        RunsFile::new("test", "2026-11-15".to_owned(), results)
    }

    #[test]
    fn the_best_stands_first_and_seeds_are_joined() {
        let table = table(&[file(vec![run("weak", 0, 0.2), run("strong", 0, 0.4), run("strong", 1, 0.5)])]);
        let rows: Vec<&str> = table.lines().skip(4).collect();
        // Mean 45, deviation sqrt(2 · 0.05²) = 7.07.
        assert_eq!(rows, ["| strong | motion | 2 | 45.0 ± 7.1 |", "| weak | motion | 1 | 20.0 (15.0 – 25.0) |"]);
    }

    #[test]
    fn a_later_file_replaces_the_same_run() {
        let table = table(&[file(vec![run("one", 0, 0.2)]), file(vec![run("one", 0, 0.3)])]);
        assert!(table.contains("30.0") && !table.contains("20.0"), "{table}");
    }

    #[test]
    fn tests_with_changed_queries_are_no_plain_figures() {
        let mut masked = run("one", 0, 0.2);
        masked.tests[0].text = QueryText::MaskVerb;
        assert_eq!(masked.plain("test-iid", "R@1,IoU=0.5"), None);
        assert_eq!(table(&[file(vec![masked])]), "");
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

    #[test]
    fn the_table_is_laid_between_the_markers() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(laid_into(&document, "new").unwrap(), format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(laid_into("no markers", "new"), None);
    }
}
