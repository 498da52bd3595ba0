//! Predictions with the published evaluators' figures, read through our own readers and scored by our presets.
//!
//! The files lie in the shared folder and are never copied; `parity.rs` checks the same conventions on small cases.

use std::sync::Arc;

use camino::Utf8PathBuf;
use cuemark_core::{Answers, NormSpan, Predictions, Progress, Span, Split};
use cuemark_data::{Durations, ReadOptions, TruthFormat, read_truth};
use cuemark_formats::{FileAnswers, PredictionOptions, Source, VideoIndex, read_answers, read_predictions};
use cuemark_metrics::{
    Evaluation, Judge, Missing, Overrides, Plan, Preset, Suppression, Threshold, TruthSpans, WhichHit,
    discounted_recall_at, evaluate, parse_list,
};
use cuemark_testkit::shared;
use serde_json::Value;

/// For hits, fractions, mIoU, NDCG and dR.
const EXACT: f64 = 1e-9;
/// For mAP and highlights, in percent.
const PRECISION: f64 = 1e-7;

struct Golden {
    split: Split,
    predictions: Predictions,
    /// The same file as `eval` reads it.
    answers: FileAnswers,
    expected: Value,
    per_query: Value,
}

impl Golden {
    fn read(folder: &Utf8PathBuf, truth: &str, format: &str, durations: Option<&str>, videos: Option<&str>) -> Self {
        let durations = durations.map(|path| Arc::new(Durations::read(&Source::new(folder.join(path))).unwrap()));
        let options = ReadOptions { durations, ..ReadOptions::default() };
        let format: TruthFormat = format.parse().unwrap();
        let split = read_truth(&Source::new(folder.join(truth)), Some(format), &options).unwrap();
        let videos = videos.map(|path| VideoIndex::read(&Source::new(folder.join(path))).unwrap());
        let lines = folder.join("predictions.jsonl.gz");
        let path = if lines.exists() { lines } else { folder.join("predictions.json.gz") };
        let options = PredictionOptions { videos, ..PredictionOptions::default() };
        let (_, predictions) = read_predictions(&Source::new(&path), &options).unwrap();
        let (_, answers) = read_answers(&Source::new(path), &options).unwrap();
        let json = |name: &str| match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => Value::Null,
        };
        Self { split, predictions, answers, expected: json("expected.json"), per_query: json("per_query.json") }
    }

    fn run(&self, preset: Preset, metrics: Option<&str>, overrides: Overrides) -> Evaluation {
        let metrics = metrics.map(|list| parse_list(list).unwrap());
        self.evaluate(&Plan::preset(preset, metrics, overrides))
    }

    fn evaluate(&self, plan: &Plan) -> Evaluation {
        let of = |answers: &dyn Answers| evaluate(plan, &self.split.queries, answers, &Progress::new()).unwrap();
        let (lists, read_to_score) = (of(&self.predictions), of(&self.answers));
        for (column, same) in lists.columns.iter().zip(&read_to_score.columns) {
            let bits = |scores: &[f64]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(column.scores()), bits(same.scores()), "{}", column.name);
        }
        assert_eq!(lists.columns.len(), read_to_score.columns.len());
        lists
    }
}

fn mean(evaluation: &Evaluation, name: &str) -> f64 {
    let column = evaluation.columns.iter().find(|column| column.name.to_string() == name);
    column.unwrap_or_else(|| panic!("{name} was not computed")).mean().unwrap()
}

fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} instead of {expected}");
}

const RECALLS: &str = "R@1,IoU=0.1,R@5,IoU=0.1,R@1,IoU=0.3,R@5,IoU=0.3,R@1,IoU=0.5,R@5,IoU=0.5,R@1,IoU=0.7,R@5,IoU=0.7,\
                       R@1,IoU=0.9,R@5,IoU=0.9,mIoU";

/// Checks every recall and mIoU of one section of `expected.json`.
fn check_section(golden: &Golden, section: &str, preset: Preset, overrides: Overrides) {
    let figures = golden.expected[section].as_object().unwrap();
    let evaluation = golden.run(preset, Some(RECALLS), overrides);
    let mut checked = 0;
    for (key, expected) in figures {
        let name = key.replace("top1 IoU>=", "R@1,IoU=");
        if !name.starts_with("R@") && name != "mIoU" {
            continue;
        }
        let found = mean(&evaluation, &name);
        let fraction = expected.get("fraction").unwrap_or(expected).as_f64().unwrap();
        assert_close(&format!("{section} {key}"), found, fraction, EXACT);
        if let Some(hits) = expected.get("hits") {
            let found = found * golden.split.queries.len() as f64;
            assert_eq!(found.round() as u64, hits.as_u64().unwrap(), "{section} {key}");
        }
        checked += 1;
    }
    assert!(checked >= 8, "{section}: only {checked} figures");
}

/// Every section of the three single-video cases.
fn check_single_video(golden: &Golden) {
    assert_eq!(golden.split.queries.len() as u64, golden.expected["counts"]["queries"].as_u64().unwrap());
    let nms = golden.expected["videox_nms"]["nms_threshold"].as_f64().unwrap();
    let suppress = Overrides { nms: Some(Suppression::Above(nms)), ..Overrides::default() };
    let as_listed = Overrides { nms: Some(Suppression::Off), ..Overrides::default() };
    check_section(golden, "videox_nms", Preset::Tan2d, suppress);
    check_section(golden, "videox_no_nms", Preset::Tan2d, as_listed);
    let clipped = Overrides { truth: Some(TruthSpans::Clipped), ..suppress };
    check_section(golden, "videox_nms_clipped_truth", Preset::Tan2d, clipped);
    check_section(golden, "molef_nms", Preset::Molef, Overrides::default());
    let in_file_order = Overrides { order: Some(cuemark_metrics::Order::File), ..as_listed };
    check_section(golden, "molef_no_nms", Preset::Molef, in_file_order);
    check_discounted(golden);
    let top = golden.run(Preset::Tan2d, Some("mIoU"), as_listed);
    let listed = golden.per_query["top1_iou"].as_array();
    let expected: Vec<f64> = match listed {
        Some(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
        None => golden.per_query["top1_iou"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).collect(),
    };
    for (position, expected) in expected.into_iter().enumerate() {
        assert_close(&format!("query {position}"), top.columns[0].score(position).unwrap(), expected, EXACT);
    }
}

fn check_discounted(golden: &Golden) {
    let metrics = RECALLS.replace(",mIoU", "");
    let both = format!("{metrics},{}", metrics.replace("R@", "dR@"));
    let evaluation = golden.run(Preset::CharadesCd, Some(&both), Overrides::default());
    for (key, expected) in golden.expected["discounted_recall"].as_object().unwrap() {
        let (name, which) = key.split_once(" (").map_or((key.as_str(), ""), |(name, which)| (name, which));
        match (name.starts_with("dR@") || name.starts_with("R@"), which) {
            (false, _) => {}
            (true, "first hit)") => {
                assert_close(key, first_hit_mean(golden, name), expected.as_f64().unwrap(), EXACT);
            }
            (true, _) => {
                let fraction = expected.get("fraction").unwrap_or(expected).as_f64().unwrap();
                assert_close(key, mean(&evaluation, name), fraction, EXACT);
            }
        }
    }
}

/// dR@5 with the first hit discounted, which the metric offers by name and no preset uses.
fn first_hit_mean(golden: &Golden, name: &str) -> f64 {
    let m: f64 = name.split_once("IoU=").unwrap().1.parse().unwrap();
    let lists = golden.predictions.for_task(cuemark_core::Task::Any).unwrap();
    let judge = Judge { iou: cuemark_core::Iou::Hull, ..Judge::default() };
    let scores = golden.split.queries.iter().map(|truth| {
        let unit = |span: Span| NormSpan::of(span, truth.duration().unwrap()).unwrap().to_span(1.0);
        let list = lists.iter().find(|list| list.query == truth.query.id).unwrap();
        let ranked: Vec<Span> = list.ranked.iter().map(|p| unit(p.span)).collect();
        let right: Vec<Span> = truth.right().map(|moment| unit(moment.span)).collect();
        discounted_recall_at(5, m, &ranked, &right, 1.0, WhichHit::First, judge)
    });
    scores.sum::<f64>() / golden.split.queries.len() as f64
}

#[test]
fn activitynet_agrees_with_videox_molef_and_the_bias_papers() {
    let Some(folder) = shared("golden/activitynet-val2") else { return };
    check_single_video(&Golden::read(&folder, "ground_truth.json", "activitynet-captions", None, None));
}

#[test]
fn tacos_agrees_with_videox_molef_and_the_bias_papers() {
    let Some(folder) = shared("golden/tacos-2dtan-test") else { return };
    check_single_video(&Golden::read(&folder, "ground_truth.json", "tacos-2dtan", None, None));
}

#[test]
fn charades_agrees_with_videox_molef_and_the_bias_papers() {
    let Some(folder) = shared("golden/charades-sta-test") else { return };
    let durations = Some("../../data/charades-sta/Charades_v1_test.csv.gz");
    check_single_video(&Golden::read(&folder, "ground_truth.txt", "charades-sta", durations, None));
}

#[test]
fn tvr_agrees_with_its_evaluator_in_single_and_in_double_precision() {
    let Some(folder) = shared("golden/tvr-val") else { return };
    let golden = Golden::read(&folder, "ground_truth.jsonl.gz", "tvr", None, None);
    let published = golden.run(Preset::Tvr, None, Overrides::default());
    // The preset's own metrics in double precision: the same plan with another form of overlap.
    let mut plan = Plan::preset(Preset::Tvr, None, Overrides::default());
    plan.stages.iter_mut().for_each(|stage| stage.judge.iou = cuemark_core::Iou::Hull);
    let double = golden.evaluate(&plan);
    for (section, evaluation) in
        [("expected", &published), ("expected_by_type", &published), ("variant_float64", &double)]
    {
        let mut checked = 0;
        for (task, figures) in golden.expected[section].as_object().unwrap() {
            for (key, expected) in figures.as_object().unwrap() {
                let Some(percent) = expected.get("percent") else { continue };
                let mut parts: Vec<&str> = key.split('-').collect();
                let group = match parts[0] {
                    "v" | "t" | "vt" => format!("/type={}", parts.remove(0)),
                    _ => String::new(),
                };
                let name = match parts[..] {
                    [m, r] => format!("{task}:R@{},IoU={m}{group}", &r[1..]),
                    [r] => format!("{task}:R@{}{group}", &r[1..]),
                    _ => panic!("{key}"),
                };
                let found = 100.0 * mean(evaluation, &name);
                assert_close(&format!("{section} {task} {key}"), found, percent.as_f64().unwrap(), EXACT);
                checked += 1;
            }
        }
        assert!(checked >= 16, "{section}: only {checked} figures");
    }
}

#[test]
fn qvhighlights_agrees_with_its_evaluator() {
    let Some(folder) = shared("golden/qvhighlights-val") else { return };
    let golden = Golden::read(&folder, "ground_truth.jsonl", "qvhighlights", None, None);
    let evaluation = golden.run(Preset::QvHighlights, None, Overrides::default());
    let checked = check_qvhighlights(&evaluation, &golden.expected["expected"], PRECISION);
    assert_eq!(checked, 4 * (11 + 10) + 3 * 2);
    for (position, truth) in golden.split.queries.iter().enumerate() {
        let expected = &golden.per_query[truth.query.id.as_str()];
        let score = |name: &str| {
            let column = evaluation.columns.iter().find(|column| column.name.to_string() == name).unwrap();
            100.0 * column.score(position).unwrap()
        };
        for (at, ap) in expected["ap_percent"].as_array().unwrap().iter().enumerate() {
            let m = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95][at];
            assert_close(
                &format!("query {} mAP@{m}", truth.query.id),
                score(&format!("mAP@{m}")),
                ap.as_f64().unwrap(),
                PRECISION,
            );
        }
        for (level, ap) in ["Fair", "Good", "VeryGood"].iter().zip(expected["hl_map_percent"].as_array().unwrap()) {
            assert_close(level, score(&format!("HL-mAP/{level}")), ap.as_f64().unwrap(), PRECISION);
        }
    }
}

/// Compares with the layout that Moment-DETR's evaluator prints; returns how many figures there were.
fn check_qvhighlights(evaluation: &Evaluation, expected: &Value, tolerance: f64) -> usize {
    let mut checked = 0;
    let mut check = |name: String, expected: &Value| {
        assert_close(&name, 100.0 * mean(evaluation, &name), expected.as_f64().unwrap(), tolerance);
        checked += 1;
    };
    for (section, figures) in expected.as_object().unwrap().iter().filter(|(section, _)| *section != "brief") {
        for (kind, value) in figures.as_object().unwrap() {
            match section.strip_prefix("HL-min-") {
                Some(level) => check(format!("{kind}/{level}"), value),
                None => {
                    let group = if section == "full" { String::new() } else { format!("/{section}") };
                    for (m, value) in value.as_object().unwrap() {
                        let name = match (kind.as_str(), m.as_str()) {
                            ("MR-R1", m) => format!("R@1,IoU={m}{group}"),
                            (_, "average") => format!("mAP{group}"),
                            (_, m) => format!("mAP@{m}{group}"),
                        };
                        check(name, value);
                    }
                }
            }
        }
    }
    checked
}

#[test]
fn the_authors_sample_predictions_give_the_authors_numbers() {
    let Some(folder) = shared("data/qvhighlights") else { return };
    let truth = Source::new(folder.join("highlight_val_release.jsonl"));
    let split = read_truth(&truth, None, &ReadOptions::default()).unwrap();
    let source = Source::new(folder.join("sample_val_preds.jsonl.gz"));
    let (_, predictions) = read_predictions(&source, &PredictionOptions::default()).unwrap();
    let plan = Plan::preset(Preset::QvHighlights, None, Overrides::default());
    let evaluation = evaluate(&plan, &split.queries, &predictions, &Progress::new()).unwrap();
    let text = std::fs::read_to_string(folder.join("sample_val_preds_metrics_raw.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    // Printed with two decimals: every figure rounds to exactly what the authors published.
    let rounded = |name: &str| format!("{:.2}", 100.0 * mean(&evaluation, name)).parse::<f64>().unwrap();
    for (key, value) in expected["brief"].as_object().unwrap() {
        let parts: Vec<&str> = key.split('-').collect();
        let name = match parts[..] {
            ["HL", "min", level, kind] => format!("HL-{kind}/{level}"),
            ["MR", "full", figure] => figure.replace("R1@", "R@1,IoU="),
            ["MR", range, figure] => format!("{}/{range}", figure.replace("R1@", "R@1,IoU=")),
            _ => panic!("{key}"),
        };
        assert_eq!(rounded(&name), value.as_f64().unwrap(), "{key}");
    }
    assert_eq!(check_qvhighlights(&evaluation, &expected, 0.005 + 1e-9), 4 * (11 + 10) + 3 * 2);
}

#[test]
fn ranked_lists_agree_with_the_tvr_ranking_evaluator() {
    let Some(folder) = shared("golden/ranked-synthetic") else { return };
    let videos = Some("../../data/tvr-ranking/video_name_duration_id.json");
    let golden = Golden::read(&folder, "ground_truth.json.gz", "tvr-ranking", None, videos);
    let names: Vec<&String> = golden.expected["expected"].as_object().unwrap().keys().collect();
    let metrics = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",");
    let code = golden.run(Preset::TvrRanking, Some(&metrics), Overrides::default());
    let inclusive = Overrides { threshold: Some(Threshold::Inclusive), ..Overrides::default() };
    let reading = golden.run(Preset::TvrRanking, Some(&metrics), inclusive);
    assert_eq!(Preset::TvrRanking.missing(), Missing::Skip);
    for (section, evaluation) in [("expected", &code), ("variant_greater_or_equal", &reading)] {
        for (name, expected) in golden.expected[section].as_object().unwrap() {
            assert_close(&format!("{section} {name}"), mean(evaluation, name), expected.as_f64().unwrap(), EXACT);
        }
    }
    for (position, truth) in golden.split.queries.iter().enumerate() {
        for (column, (name, expected)) in
            code.columns.iter().zip(golden.per_query[truth.query.id.as_str()].as_object().unwrap())
        {
            assert_eq!(column.name.to_string(), *name);
            assert_close(
                &format!("query {} {name}", truth.query.id),
                column.score(position).unwrap(),
                expected.as_f64().unwrap(),
                EXACT,
            );
        }
    }
}
