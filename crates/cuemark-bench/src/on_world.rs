//! What models reached on the built-in world: one figure each, from files of runs.

use std::collections::BTreeMap;
use std::fmt;

use cuemark_formats::world_folder::WORLD;
use cuemark_text::variants::QueryText;
use serde::Serialize;

use crate::leaderboard::{RunResult, RunsFile};

/// The split that is quoted.
const SPLIT: &str = "test-iid";
/// The metrics that are quoted: the first that a run has.
const METRICS: [&str; 4] = ["R@1,IoU=0.5", "VCMR:R@1,IoU=0.5", "VR:R@10", "NDCG@20,IoU=0.5"];
/// Quoted as well of models that score clips.
const HIGHLIGHTS: [&str; 2] = ["HL-mAP/VeryGood", "HL-Hit1/VeryGood"];

/// What one model reached, the mean over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnWorld {
    /// Of which metric.
    pub metric: &'static str,
    /// A fraction.
    pub value: f64,
    /// Runs that it is the mean of.
    pub seeds: usize,
    /// On which split.
    pub split: &'static str,
    /// How well it scores clips, metrics by name, fractions; of models that do.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub highlights: BTreeMap<&'static str, f64>,
}

impl fmt::Display for OnWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        write!(f, "{} {:.1}", self.metric, 100.0 * self.value)?;
        for (metric, value) in &self.highlights {
            write!(f, ", {metric} {:.1}", 100.0 * value)?;
        }
        write!(f, " ({seeds})")
    }
}

/// By model what `files` say about the world: the plain model on its strongest features, the queries as they are. Of a run that
/// stands in two files the later one counts.
pub fn on_world(files: &[RunsFile]) -> BTreeMap<&str, OnWorld> {
    let mut found: BTreeMap<&str, BTreeMap<u64, Quoted>> = BTreeMap::new();
    for run in files.iter().flat_map(|file| &file.results).filter(|run| counts(run)) {
        if let Some(figure) = quoted(run) {
            found.entry(&run.model).or_default().insert(run.seed, figure);
        }
    }
    found.into_iter().filter_map(|(model, seeds)| Some((model, mean(&seeds)?))).collect()
}

/// The world at the size of real datasets, by its label.
const FULL: &str = "world-full";

/// By model what `files` say about the world of 20,000 films: the variant that has most of its metric. Recipes and minutes differ there, so
/// most rows are variants.
pub fn on_full_world(files: &[RunsFile]) -> BTreeMap<&str, OnWorld> {
    let mut found: BTreeMap<(&str, &str), BTreeMap<u64, Quoted>> = BTreeMap::new();
    for run in files.iter().flat_map(|file| &file.results).filter(|run| run.dataset == FULL) {
        if let Some(figure) = quoted(run) {
            found.entry((run.model.as_str(), run.variant.as_str())).or_default().insert(run.seed, figure);
        }
    }
    let mut best: BTreeMap<&str, OnWorld> = BTreeMap::new();
    for ((model, _), seeds) in found {
        let Some(figure) = mean(&seeds) else { continue };
        if best.get(model).is_none_or(|best| best.metric == figure.metric && best.value < figure.value) {
            best.insert(model, figure);
        }
    }
    best
}

/// What is quoted of one run.
struct Quoted {
    /// The place in [`METRICS`].
    metric: usize,
    value: f64,
    highlights: BTreeMap<&'static str, f64>,
}

fn counts(run: &RunResult) -> bool {
    run.dataset == WORLD && run.variant.is_empty() && (run.features.is_empty() || run.features == "motion")
}

/// The figures of the first test of the split that has one.
fn quoted(run: &RunResult) -> Option<Quoted> {
    let mut tests = run.tests.iter().filter(|test| test.split == SPLIT && test.text == QueryText::Original);
    tests.find_map(|test| {
        let metric = METRICS.iter().position(|metric| test.metrics.contains_key(*metric))?;
        let clips = HIGHLIGHTS.into_iter().filter_map(|name| Some((name, test.metrics.get(name)?.value)));
        Some(Quoted { metric, value: test.metrics.get(METRICS[metric])?.value, highlights: clips.collect() })
    })
}

/// The mean over the seeds that have the best-placed metric.
fn mean(seeds: &BTreeMap<u64, Quoted>) -> Option<OnWorld> {
    let metric = seeds.values().map(|quoted| quoted.metric).min()?;
    let alike: Vec<&Quoted> = seeds.values().filter(|quoted| quoted.metric == metric).collect();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let clips = HIGHLIGHTS.into_iter().filter_map(|name| {
        let values: Option<Vec<f64>> = alike.iter().map(|quoted| quoted.highlights.get(name).copied()).collect();
        values.map(|values| (name, mean(values)))
    });
    Some(OnWorld {
        metric: METRICS[metric],
        value: mean(alike.iter().map(|quoted| quoted.value).collect()),
        seeds: alike.len(),
        split: SPLIT,
        highlights: clips.collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(model: &str, seed: u64, variant: &str, metric: &str, value: f64) -> Value {
        json!({
            "model": model, "variant": variant, "dataset": "world", "protocol": "own", "features": "motion",
            "seed": seed, "kind": "model", "tests": [
                { "test": "ood", "split": "test-ood", "queries": 1, "metrics": { metric: { "value": 0.9 } } },
                { "test": "masked", "split": "test-iid", "text": "mask-verb", "queries": 1, "metrics": { metric: { "value": 0.8 } } },
                { "test": "iid", "split": "test-iid", "text": "original", "queries": 1, "metrics": { metric: { "value": value } } },
            ],
        })
    }

    fn file(results: Value) -> RunsFile {
        RunsFile::new("test", "2026-11-15".to_owned(), serde_json::from_value(results).unwrap())
    }

    #[test]
    fn seeds_are_averaged_and_later_files_replace_earlier_ones() {
        let iou = "R@1,IoU=0.5";
        let files = [
            file(json!([run("lgi", 0, "", iou, 0.1), run("lgi", 1, "", iou, 0.5)])),
            file(json!([run("lgi", 0, "", iou, 0.4), run("lgi", 2, "half", iou, 0.9)])),
            file(json!([run("ms-sl", 0, "", "VR:R@10", 0.2)])),
        ];
        let found = on_world(&files);
        assert_eq!(found.len(), 2);
        assert_eq!(found["lgi"].to_string(), "R@1,IoU=0.5 45.0 (2 seeds)");
        assert_eq!(found["ms-sl"].to_string(), "VR:R@10 20.0 (1 seed)");
        assert_eq!(serde_json::to_value(&found["ms-sl"]).unwrap()["split"], "test-iid");
        assert!(on_world(&[]).is_empty());
    }

    #[test]
    fn of_the_full_world_the_best_variant_is_quoted() {
        let iou = "R@1,IoU=0.5";
        let full = |variant: &str, seed: u64, value: f64| {
            let mut run = run("lgi", seed, variant, iou, value);
            run["dataset"] = json!("world-full");
            run
        };
        let runs = [full("short", 0, 0.4), full("long", 0, 0.5), full("long", 1, 0.7), run("lgi", 0, "", iou, 0.9)];
        let files = [file(json!(runs))];
        assert_eq!(on_full_world(&files)["lgi"].to_string(), "R@1,IoU=0.5 60.0 (2 seeds)");
        assert_eq!(on_world(&files)["lgi"].to_string(), "R@1,IoU=0.5 90.0 (1 seed)");
    }

    #[test]
    fn models_that_score_clips_are_quoted_for_both_tasks() {
        let mut both = run("qd-detr", 0, "", "R@1,IoU=0.5", 0.4);
        both["tests"][2]["metrics"]["HL-mAP/VeryGood"] = json!({ "value": 0.5 });
        both["tests"][2]["metrics"]["HL-Hit1/VeryGood"] = json!({ "value": 0.6 });
        let files = [file(json!([both.clone(), run("lgi", 0, "", "R@1,IoU=0.5", 0.4)]))];
        let found = on_world(&files);
        assert_eq!(
            found["qd-detr"].to_string(),
            "R@1,IoU=0.5 40.0, HL-Hit1/VeryGood 60.0, HL-mAP/VeryGood 50.0 (1 seed)"
        );
        assert_eq!(found["lgi"].to_string(), "R@1,IoU=0.5 40.0 (1 seed)");
        assert_eq!(serde_json::to_value(&found["qd-detr"]).unwrap()["highlights"]["HL-mAP/VeryGood"], 0.5);
        assert!(serde_json::to_value(&found["lgi"]).unwrap().get("highlights").is_none());
        // A mean over seeds of which one has no such figure would be of other runs than the rest of the line.
        let mut second = run("qd-detr", 1, "", "R@1,IoU=0.5", 0.4);
        second["tests"][2]["metrics"]["HL-mAP/VeryGood"] = json!({ "value": 0.7 });
        let files = [file(json!([both, second]))];
        assert_eq!(on_world(&files)["qd-detr"].to_string(), "R@1,IoU=0.5 40.0, HL-mAP/VeryGood 60.0 (2 seeds)");
    }
}
