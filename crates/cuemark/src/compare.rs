//! Whether one prediction file is better than another.

use camino::Utf8PathBuf;
use cuemark_core::text::counted;
use cuemark_core::{Advice, Progress, RowCounts};
use cuemark_metrics::{Column, PairedComparison, compare, holm};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::score::one_standard_input;
use crate::{
    Error, Note, PredictionFile, PredictionReading, Resampling, Result, RowsOf, ScoredLists, Scoring, TruthFile,
    row_notes,
};

/// Scores two or more prediction files on the same queries and compares every pair of them query by query.
///
/// The difference of a pair (the later file less the earlier) comes with a paired bootstrap interval, the p-value of a paired
/// randomisation test (with more than two files also corrected after Holm, over the pairs of one metric), the effect size
/// (mean difference over its standard deviation) and the queries won and lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Compare {
    /// What is right.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub truth: TruthFile,
    /// The prediction files, two or more: A, B, C …
    #[cfg_attr(feature = "clap", arg(value_name = "FILE", required = true, num_args = 2..))]
    pub files: Vec<Utf8PathBuf>,
    /// How to read them.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub reading: PredictionReading,
    /// The metric; several are separated by commas. The same as `--metrics`. Default: R@1,IoU=0.5
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M", conflicts_with = "metrics"))]
    pub metric: Option<String>,
    /// In which conventions.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub scoring: Scoring,
    /// Confidence level of the interval in percent.
    #[serde(default = "Compare::percent")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PERCENT", default_value_t = Self::percent()))]
    pub ci: f64,
    /// How the interval and the p-value are found.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub resampling: Resampling,
}

/// How prediction files compare. As JSON it is what `cuemark compare --json` prints.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The files, in the order given.
    pub files: Vec<ComparedFile>,
    /// Names of the metrics, in the order asked for.
    pub metrics: Vec<String>,
    /// Every pair of files, in order: A and B, A and C, B and C …
    pub pairs: Vec<ComparedPair>,
    /// Queries of the truth.
    pub queries: usize,
    /// The confidence level in percent.
    pub percent: f64,
    /// What was wrong with the rows of the truth.
    pub truth_rows: RowCounts,
    /// What a reader of the numbers should know about the files.
    pub notes: Vec<Note>,
}

/// One file of a comparison.
#[derive(Debug, Clone)]
pub struct ComparedFile {
    /// Where it lies.
    pub path: Utf8PathBuf,
    /// Its mean in every metric, as fractions; `None` where no query counts.
    pub means: Vec<Option<f64>>,
    /// Queries that it does not answer.
    pub missing: usize,
    /// What was wrong with its rows.
    pub rows: RowCounts,
}

/// Two files of a comparison, by their places in [`Compared::files`].
#[derive(Debug, Clone)]
pub struct ComparedPair {
    /// The earlier file.
    pub a: usize,
    /// The later file.
    pub b: usize,
    /// One entry per metric that both have.
    pub metrics: Vec<ComparedMetric>,
}

/// One metric of two files.
#[derive(Debug, Clone)]
pub struct ComparedMetric {
    /// The metric's name.
    pub name: String,
    /// B - A, over the queries that count for both.
    pub comparison: PairedComparison,
    /// The p-value corrected over the pairs of this metric (Holm); with two files the p-value itself.
    pub p_corrected: f64,
}

impl Compare {
    /// The confidence level unless somebody says otherwise, in percent.
    pub const fn percent() -> f64 {
        95.0
    }

    /// Reads the files and compares them.
    ///
    /// # Errors
    /// When a name does not exist (before any file is opened), a file cannot be read or does not belong to the truth, a
    /// metric does not fit the files, or no query counts for any pair.
    pub fn run(&self, progress: &Progress) -> Result<Compared> {
        let how = self.resampling.bootstrap(self.ci)?;
        if self.files.len() < 2 {
            return Err(Error::setting("files", "a comparison needs two files"));
        }
        let mut scoring = self.scoring.clone();
        let usual = || scoring.preset.is_none().then(|| "R@1,IoU=0.5".to_owned());
        scoring.metrics = self.metric.clone().or_else(|| scoring.metrics.clone()).or_else(usual);
        let scoring = scoring.check::<&str>(&[])?.headline();
        progress.phase("reading", 0);
        let truth = self.truth.source(progress);
        let files: Vec<PredictionFile> = self
            .files
            .iter()
            .map(|path| PredictionFile { path: path.clone(), reading: self.reading.clone() })
            .collect();
        let sources: Vec<_> = files.iter().map(|file| file.source(progress)).collect();
        one_standard_input(std::iter::once(&truth).chain(&sources))?;
        let split = self.truth.reading.read(&truth)?;
        let mut notes = self.truth.notes(&truth, &split);
        let mut scored: Vec<(ComparedFile, Vec<Column>)> = Vec::new();
        for (file, source) in files.into_iter().zip(&sources) {
            progress.phase("reading", 0);
            let predictions = file.reading.read_answers(source)?.answering(&split.queries);
            progress.phase("scoring", 0);
            let name = file.path.as_str();
            let ScoredLists { evaluation, notes: odd, .. } =
                scoring.score(&split.queries, &predictions, name, progress)?;
            let rows = row_notes(name, predictions.rows(), RowsOf::Predictions);
            notes.extend(rows.into_iter().chain(odd).map(|note| note.located(source)));
            let missing = evaluation.missing;
            if missing > 0 {
                notes.push(unanswered(name, missing, evaluation.queries));
            }
            let file = ComparedFile { path: file.path, means: Vec::new(), missing, rows: predictions.rows().clone() };
            scored.push((file, evaluation.columns));
        }
        progress.phase("resampling", 0);
        let (files, metrics, pairs) = pairs(scored, |a, b| Ok(compare(a, b, how, progress)?))?;
        if pairs.iter().all(|pair| pair.metrics.is_empty()) {
            return Err(Error::Nothing {
                problem: "no query counts for both files".to_owned(),
                advice: Some(Advice::say("score each with ").run("eval").and(" to see what it answers")),
            });
        }
        Ok(Compared {
            files,
            metrics,
            pairs,
            queries: split.queries.len(),
            percent: 100.0 * how.level,
            truth_rows: split.rows,
            notes,
        })
    }
}

fn unanswered(file: &str, missing: usize, queries: usize) -> Note {
    let text = format!(
        "{} of {} without an answer; such a query counts as the metric counts a miss",
        cuemark_core::text::thousands(missing),
        counted(queries, "query is", "queries are")
    );
    Note::new(file, missing, text)
}

/// Compares every pair in every metric and corrects p-values over the pairs of each metric.
fn pairs(
    scored: Vec<(ComparedFile, Vec<Column>)>,
    compare: impl Fn(&Column, &Column) -> Result<Option<PairedComparison>>,
) -> Result<(Vec<ComparedFile>, Vec<String>, Vec<ComparedPair>)> {
    let metrics: Vec<String> =
        scored.first().map_or(&[][..], |(_, columns)| columns).iter().map(|column| column.name.to_string()).collect();
    let column = |columns: &'_ [Column], name: &str| columns.iter().position(|column| column.name.to_string() == name);
    let mut pairs = Vec::new();
    for (a, (_, of_a)) in scored.iter().enumerate() {
        for (b, (_, of_b)) in scored.iter().enumerate().skip(a + 1) {
            let mut found = Vec::new();
            for name in &metrics {
                let (Some(one), Some(other)) = (column(of_a, name), column(of_b, name)) else { continue };
                if let Some(comparison) = compare(&of_a[one], &of_b[other])? {
                    let p_corrected = comparison.p_value;
                    found.push(ComparedMetric { name: name.clone(), comparison, p_corrected });
                }
            }
            pairs.push(ComparedPair { a, b, metrics: found });
        }
    }
    for name in &metrics {
        let mut tests: Vec<&mut ComparedMetric> =
            pairs.iter_mut().flat_map(|pair| &mut pair.metrics).filter(|test| test.name == *name).collect();
        let p_values: Vec<f64> = tests.iter().map(|test| test.comparison.p_value).collect();
        for (test, corrected) in tests.iter_mut().zip(holm(&p_values)) {
            test.p_corrected = corrected;
        }
    }
    let files = scored.into_iter().map(|(mut file, columns)| {
        file.means = metrics.iter().map(|name| columns[column(&columns, name)?].mean()).collect();
        file
    });
    Ok((files.collect(), metrics, pairs))
}

impl Serialize for ComparedMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let r = &self.comparison;
        let value = json!({
            "a": r.a, "b": r.b, "difference": r.difference, "interval": [r.interval.low, r.interval.high],
            "p_value": r.p_value, "p_corrected": self.p_corrected, "effect_size": r.effect_size,
            "wins": r.wins, "ties": r.ties, "losses": r.losses, "queries": r.queries,
        });
        value.serialize(serializer)
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = |pair: &ComparedPair| -> Map<String, Value> {
            pair.metrics.iter().map(|metric| (metric.name.clone(), json!(metric))).collect()
        };
        let file = |file: &ComparedFile| {
            let metrics: Map<String, Value> =
                self.metrics.iter().cloned().zip(file.means.iter().map(|mean| json!(mean))).collect();
            json!({ "file": file.path, "missing": file.missing, "metrics": metrics })
        };
        let mut value = json!({
            "queries": self.queries,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "notes": self.notes,
        });
        if let [only] = self.pairs.as_slice() {
            value["comparisons"] = figures(only).into();
        }
        let pairs = self.pairs.iter().map(|pair| json!({ "a": pair.a, "b": pair.b, "comparisons": figures(pair) }));
        value["pairs"] = pairs.collect::<Vec<_>>().into();
        value.serialize(serializer)
    }
}
