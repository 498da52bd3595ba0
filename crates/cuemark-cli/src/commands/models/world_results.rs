//! What models reached on the built-in world, from the files of committed runs.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::Source;
use serde::Deserialize;

/// The split that the table quotes.
const SPLIT: &str = "test-iid";
/// The metrics that it quotes: the first that a run has.
const METRICS: [&str; 4] = ["R@1,IoU=0.5", "VCMR:R@1,IoU=0.5", "VR:R@10", "NDCG@20,IoU=0.5"];

/// What one model reached, the mean over its seeds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OnWorld {
    /// Of which metric.
    pub(crate) metric: &'static str,
    /// A fraction.
    pub(crate) value: f64,
    /// Runs that it is the mean of.
    pub(crate) seeds: usize,
}

impl fmt::Display for OnWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        write!(f, "{} {:.1} ({seeds})", self.metric, 100.0 * self.value)
    }
}

/// The parts of `runs-*.json` that are read here.
#[derive(Deserialize)]
struct Runs {
    results: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    model: String,
    #[serde(default)]
    variant: String,
    dataset: String,
    #[serde(default)]
    features: String,
    seed: u64,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    split: String,
    #[serde(default)]
    text: String,
    metrics: BTreeMap<String, Figure>,
}

#[derive(Deserialize)]
struct Figure {
    value: f64,
}

/// By model what the `runs-*.json` of `folder` say about the world; files later in the alphabet replace earlier ones.
///
/// Nothing when there is no such folder.
pub(crate) fn on_world(folder: &Utf8Path) -> anyhow::Result<BTreeMap<String, OnWorld>> {
    let Ok(entries) = folder.read_dir_utf8() else { return Ok(BTreeMap::new()) };
    let mut files: Vec<Utf8PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.into_path())).collect();
    let is_runs = |path: &Utf8PathBuf| {
        path.file_name().is_some_and(|name| name.starts_with("runs-")) && path.extension() == Some("json")
    };
    files.retain(is_runs);
    files.sort();
    let mut found: BTreeMap<String, BTreeMap<u64, (usize, f64)>> = BTreeMap::new();
    for file in files {
        let text = Source::new(&file).text()?;
        let runs: Runs = serde_json::from_str(&text).map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
        for run in runs.results.into_iter().filter(Run::counts) {
            if let Some(figure) = run.tests.iter().find_map(Test::quoted) {
                found.entry(run.model).or_default().insert(run.seed, figure);
            }
        }
    }
    Ok(found.into_iter().filter_map(|(model, seeds)| Some((model, mean(&seeds)?))).collect())
}

/// The mean over the seeds that have the best-placed metric.
fn mean(seeds: &BTreeMap<u64, (usize, f64)>) -> Option<OnWorld> {
    let metric = seeds.values().map(|(metric, _)| *metric).min()?;
    let values: Vec<f64> = seeds.values().filter(|(other, _)| *other == metric).map(|(_, value)| *value).collect();
    let value = values.iter().sum::<f64>() / values.len() as f64;
    Some(OnWorld { metric: METRICS[metric], value, seeds: values.len() })
}

impl Run {
    /// The plain model on the world's strongest features.
    fn counts(&self) -> bool {
        self.dataset == "world" && self.variant.is_empty() && (self.features.is_empty() || self.features == "motion")
    }
}

impl Test {
    /// The place of the quoted metric in [`METRICS`], and its value.
    fn quoted(&self) -> Option<(usize, f64)> {
        if self.split != SPLIT || !(self.text.is_empty() || self.text == "original") {
            return None;
        }
        let place = METRICS.iter().position(|metric| self.metrics.contains_key(*metric))?;
        Some((place, self.metrics.get(METRICS[place])?.value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(model: &str, seed: u64, variant: &str, metric: &str, value: f64) -> Value {
        json!({ "model": model, "variant": variant, "dataset": "world", "features": "motion", "seed": seed, "tests": [
            { "test": "ood", "split": "test-ood", "metrics": { metric: { "value": 0.9 } } },
            { "test": "iid", "split": "test-iid", "text": "original", "metrics": { metric: { "value": value } } },
        ] })
    }

    #[test]
    fn seeds_are_averaged_and_later_files_replace_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, results: Value| {
            std::fs::write(folder.path().join(name), json!({ "runs": 1, "results": results }).to_string()).unwrap();
        };
        let iou = "R@1,IoU=0.5";
        write("runs-a.json", json!([run("lgi", 0, "", iou, 0.1), run("lgi", 1, "", iou, 0.5)]));
        write("runs-b.json", json!([run("lgi", 0, "", iou, 0.4), run("lgi", 2, "half", iou, 0.9)]));
        write("bench-c.json", json!("something else"));
        write("runs-d.json", json!([run("ms-sl", 0, "", "VR:R@10", 0.2)]));
        let found = on_world(Utf8Path::from_path(folder.path()).unwrap()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found["lgi"].to_string(), "R@1,IoU=0.5 45.0 (2 seeds)");
        assert_eq!(found["ms-sl"].to_string(), "VR:R@10 20.0 (1 seed)");
        assert!(on_world(Utf8Path::new("no such folder")).unwrap().is_empty());
    }
}
