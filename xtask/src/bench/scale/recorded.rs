//! What was recorded under `results/bench`, as cost against size.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The recall at which speeds are compared.
pub(super) const RECALL: f64 = 0.95;

/// One kind of work: what it costs as it grows, ours and a peer's.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What its size counts.
    pub(super) size: &'static str,
    pub(super) peer: &'static str,
    pub(super) points: Vec<Point>,
}

/// One size of one kind of work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) what: String,
    pub(super) size: f64,
    /// Seconds.
    pub(super) ours: Option<f64>,
    pub(super) peers: Option<f64>,
    /// The file that says so.
    pub(super) source: String,
    pub(super) machine: String,
}

/// A recorded result.
struct Recorded {
    file: String,
    machine: String,
    figures: Value,
}

/// Everything that is recorded, the kinds in the order of the flows.
pub(super) fn kinds(folder: &Path) -> Result<Vec<Kind>> {
    let [eval, train, encode] = [read(folder, "eval")?, read(folder, "train")?, read(folder, "encode")?];
    let (beside, alone) = (read(folder, "search")?, read(folder, "growth")?);
    let (beside, alone) = (beside.as_ref(), alone.as_ref());
    let kind = |name, size, peer, points| Kind { name, size, peer, points };
    Ok(vec![
        kind("evaluation", "queries", "the field's Python", evaluation(eval.as_ref())),
        kind("training", "clips of a map", "PyTorch", training(train.as_ref())),
        kind("extraction", "frames of a clip", "PyTorch", extraction(encode.as_ref())),
        kind("indexing", "moments", "hnswlib", indexing(beside, alone)),
        kind("search", "moments", "hnswlib", search(beside, alone)),
    ])
}

/// The newest recorded result of a bench; `None` where there is none.
fn read(folder: &Path, bench: &str) -> Result<Option<Recorded>> {
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let dated = name.strip_prefix(bench).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".json"));
        // `eval-2026-11-17.json` and not `eval-gpu-2026-11-17.json`.
        if dated.is_some_and(|date| date.starts_with(|first: char| first.is_ascii_digit())) {
            names.push(name);
        }
    }
    let Some(file) = names.into_iter().max() else { return Ok(None) };
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join(&file))?).with_context(|| file.clone())?;
    let machine = &told["machine"];
    let machine = format!("{} cores, {}", machine["cores"], machine["cpu"].as_str().unwrap_or("unknown"));
    Ok(Some(Recorded { file, machine, figures: told["figures"].clone() }))
}

impl Recorded {
    fn point(&self, what: impl Into<String>, size: f64, ours: Option<f64>, peers: Option<f64>) -> Point {
        Point { what: what.into(), size, ours, peers, source: self.file.clone(), machine: self.machine.clone() }
    }
}

/// The middle one of sorted or unsorted seconds.
fn median(times: &Value) -> Option<f64> {
    let mut times: Vec<f64> = times.as_array()?.iter().filter_map(Value::as_f64).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The first number of a name: 10895 of `TVR, 10,895 queries`.
fn first_number(name: &str) -> Option<f64> {
    let from = name.find(|c: char| c.is_ascii_digit())?;
    let digits = name[from..].chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(char::is_ascii_digit);
    digits.collect::<String>().parse().ok()
}

fn evaluation(told: Option<&Recorded>) -> Vec<Point> {
    let Some(told) = told else { return Vec::new() };
    let contest = |contest: &Value| {
        let name = contest["name"].as_str()?;
        let (ours, peers) = (median(&contest["cuemark"]["process_s"]), median(&contest["peer"]["process_s"]));
        Some(told.point(name, first_number(name)?, ours, peers))
    };
    let growth = |grown: &Value| {
        let ours = median(&grown["cuemark"]["process_s"]);
        Some(told.point("VCMR lists, ours alone", grown["queries"].as_f64()?, ours, None))
    };
    let contests = list(&told.figures["contests"]).iter().filter_map(contest);
    contests.chain(list(&told.figures["growth"]).iter().filter_map(growth)).collect()
}

fn training(told: Option<&Recorded>) -> Vec<Point> {
    let Some(told) = told else { return Vec::new() };
    let case = |case: &Value| {
        let name = case["case"].as_str()?;
        let (ours, peers) = (median(&case["valid"][0]["training_s"]), median(&case["torch"][0]["training_s"]));
        Some(told.point(format!("a step of 2D-TAN, {name}"), first_number(name)?, ours, peers))
    };
    list(&told.figures).iter().filter_map(case).collect()
}

fn extraction(told: Option<&Recorded>) -> Vec<Point> {
    let Some(told) = told else { return Vec::new() };
    let clip = |clip: &Value| {
        let frames = clip["frames"].as_f64()?;
        Some(told.point("a clip through I3D", frames, median(&clip["ours_s"]), median(&clip["torch_s"])))
    };
    list(&told.figures["vision"]["clips"]).iter().filter_map(clip).collect()
}

fn indexing(beside: Option<&Recorded>, alone: Option<&Recorded>) -> Vec<Point> {
    let mut points = Vec::new();
    if let Some(told) = beside {
        for (ours, theirs) in list(&told.figures["ours"]).iter().zip(list(&told.figures["hnswlib"])) {
            let (ours_s, theirs_s) = (ours["build_s"].as_f64(), theirs["build_s"].as_f64());
            let size = ours["moments"].as_f64();
            points.extend(size.map(|size| told.point("a graph over moments", size, ours_s, theirs_s)));
        }
    }
    if let Some(told) = alone {
        for made in list(&told.figures["made"]) {
            let size = made["moments"].as_f64();
            points
                .extend(size.map(|size| told.point("a graph over made moments", size, made["build_s"].as_f64(), None)));
        }
    }
    points
}

fn search(beside: Option<&Recorded>, alone: Option<&Recorded>) -> Vec<Point> {
    let mut points = Vec::new();
    let of_one = |told: &Value| fastest(told, RECALL).map(|qps| 1.0 / qps);
    if let Some(told) = beside {
        for (ours, theirs) in list(&told.figures["ours"]).iter().zip(list(&told.figures["hnswlib"])) {
            let size = ours["moments"].as_f64();
            points.extend(size.map(|size| told.point("a query on all cores", size, of_one(ours), of_one(theirs))));
        }
    }
    if let Some(told) = alone {
        for asked in list(&told.figures["asked"]) {
            let size = asked["moments"].as_f64();
            points.extend(size.map(|size| told.point("a query on all cores, made moments", size, of_one(asked), None)));
        }
    }
    points
}

/// Queries a second of the fastest point that finds enough.
pub(super) fn fastest(told: &Value, recall: f64) -> Option<f64> {
    let good =
        list(&told["points"]).iter().filter(|point| point["recall"].as_f64().is_some_and(|found| found >= recall));
    good.filter_map(|point| point["qps"].as_f64()).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_result_of_a_bench_counts_and_none_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, step: f64| {
            let case = json!({ "case": "N=16, k=5", "torch": [{ "training_s": [3.0, 2.0, 9.0] }], "valid": [{ "training_s": [step] }] });
            let told = json!({ "machine": { "cores": 2, "cpu": "X" }, "figures": [case] });
            std::fs::write(folder.path().join(name), told.to_string()).unwrap();
        };
        put("train-2026-01-01.json", 1.0);
        put("train-2026-02-01.json", 0.5);
        put("train-gpu-2026-03-01.json", 0.1);
        let kinds = kinds(folder.path()).unwrap();
        let training = &kinds.iter().find(|kind| kind.name == "training").unwrap().points;
        assert_eq!(training.len(), 1);
        assert_eq!((training[0].size, training[0].ours, training[0].peers), (16.0, Some(0.5), Some(3.0)));
        assert!(kinds.iter().all(|kind| kind.name == "training" || kind.points.is_empty()));
    }

    #[test]
    fn a_speed_counts_where_enough_is_found() {
        let told = json!({ "points": [{ "recall": 0.9, "qps": 9.0 }, { "recall": 0.96, "qps": 5.0 }, { "recall": 0.97, "qps": 4.0 }] });
        assert_eq!((fastest(&told, 0.95), fastest(&told, 0.99)), (Some(5.0), None));
        assert_eq!(first_number("TVR, 10,895 queries x 3"), Some(10_895.0));
    }
}
