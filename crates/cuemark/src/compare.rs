//! Whether one prediction file is better than another.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress, RowCounts};
use cuemark_metrics::{PairedComparison, compare};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::{Error, PredictionFile, PredictionReading, Resampling, Result, Scoring, TruthFile};

/// Scores two prediction files on the same queries and compares them query by query.
///
/// The difference B - A comes with a paired bootstrap interval, the p-value of a paired randomisation test, the effect
/// size (mean difference over its standard deviation) and the queries won and lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Compare {
    /// What is right.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub truth: TruthFile,
    /// The first prediction file.
    pub a: Utf8PathBuf,
    /// The second, compared with the first.
    pub b: Utf8PathBuf,
    /// How to read both.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub reading: PredictionReading,
    /// The metric; several are separated by commas. Default: R@1,IoU=0.5
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M"))]
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

/// How two prediction files compare. As JSON it is what `cuemark compare --json` prints.
#[derive(Debug, Clone)]
pub struct Compared {
    /// One entry per metric, in the order asked for.
    pub metrics: Vec<ComparedMetric>,
    /// What was wrong with the rows of the truth.
    pub truth_rows: RowCounts,
    /// What was wrong with the rows of each prediction file.
    pub prediction_rows: [RowCounts; 2],
}

/// One metric of two files.
#[derive(Debug, Clone)]
pub struct ComparedMetric {
    /// The metric's name.
    pub name: String,
    /// B - A, over the queries that count for both.
    pub comparison: PairedComparison,
}

impl Compare {
    /// The confidence level unless somebody says otherwise, in percent.
    pub const fn percent() -> f64 {
        95.0
    }

    /// Reads the files and compares them.
    ///
    /// # Errors
    /// When a name does not exist (before any file is opened), a file cannot be read, a metric does not fit the files, or
    /// no query counts for both.
    pub fn run(&self, progress: &Progress) -> Result<Compared> {
        let how = self.resampling.bootstrap(self.ci)?;
        let mut scoring = self.scoring.clone();
        scoring.metrics = self.metric.clone().or(scoring.metrics).or_else(|| Some("R@1,IoU=0.5".to_owned()));
        let scoring = scoring.check::<&str>(&[])?;
        progress.phase("reading", 0);
        let split = self.truth.read(progress)?;
        let score = |path: &Utf8PathBuf| {
            progress.phase("reading", 0);
            let file = PredictionFile { path: path.clone(), reading: self.reading.clone() };
            let predictions = file.read(progress)?.answering(&split.queries);
            progress.phase("scoring", 0);
            let (_, found) = scoring.score(&split.queries, &predictions, progress)?;
            Ok::<_, Error>((found.columns, predictions.rows))
        };
        let ((a, a_rows), (b, b_rows)) = (score(&self.a)?, score(&self.b)?);
        progress.phase("resampling", 0);
        let mut metrics = Vec::new();
        for column in &a {
            let Some(other) = b.iter().find(|other| other.name == column.name) else { continue };
            if let Some(comparison) = compare(column, other, how, progress)? {
                metrics.push(ComparedMetric { name: column.name.to_string(), comparison });
            }
        }
        if metrics.is_empty() {
            return Err(Error::Nothing {
                problem: "no query counts for both files".to_owned(),
                advice: Some(Advice::say("score each with ").run("eval").and(" to see what it answers")),
            });
        }
        Ok(Compared { metrics, truth_rows: split.rows, prediction_rows: [a_rows, b_rows] })
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = self.metrics.iter().map(|metric| {
            let r = &metric.comparison;
            let value = json!({
                "a": r.a, "b": r.b, "difference": r.difference, "interval": [r.interval.low, r.interval.high],
                "p_value": r.p_value, "effect_size": r.effect_size,
                "wins": r.wins, "ties": r.ties, "losses": r.losses, "queries": r.queries,
            });
            (metric.name.clone(), value)
        });
        json!({ "comparisons": figures.collect::<Map<String, Value>>() }).serialize(serializer)
    }
}
