//! Scoring small files of our own.

use camino::Utf8PathBuf;
use cuemark::{Compare, Error, PredictionFile, Progress, Score, TruthFile};
use cuemark_core::{Advise as _, Dialect};
use serde_json::json;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// Two queries; `good` answers both, `half` only the first.
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let truth = |qid: &str| json!({ "qid": qid, "query": "a ball spins", "video": "v", "duration": 20.0, "spans": [[2.0, 6.0]] });
        let answer = |qid: &str, start: f64| json!({ "qid": qid, "predictions": [{ "span": [start, start + 4.0], "score": 0.5 }] });
        scene.write("truth.jsonl", &[truth("1"), truth("2")]);
        scene.write("good.jsonl", &[answer("1", 2.0), answer("2", 2.0)]);
        scene.write("half.jsonl", &[answer("1", 2.0), answer("2", 12.0)]);
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().join(name)).unwrap()
    }

    fn write(&self, name: &str, lines: &[serde_json::Value]) {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        std::fs::write(self.path(name), lines.join("\n")).unwrap();
    }

    fn score(&self, name: &str) -> Score {
        Score::new(TruthFile::new(self.path("truth.jsonl")), PredictionFile::new(self.path(name)))
    }
}

#[test]
fn a_file_is_scored_and_every_query_can_be_written_down() {
    let scene = Scene::new();
    let mut score = scene.score("half.jsonl");
    score.per_query = Some(scene.path("scores.jsonl"));
    let scored = score.run(&Progress::new()).unwrap();
    let value = serde_json::to_value(&scored).unwrap();
    assert_eq!(value["metrics"]["R@1,IoU=0.5"], 0.5, "one of two answers is right");
    assert_eq!(value["queries"], 2);
    let lines = std::fs::read_to_string(scene.path("scores.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2);
    // Nothing is replaced unasked, and that is noticed before anything is read.
    score.truth = TruthFile::new(scene.path("gone.jsonl"));
    let refused = score.run(&Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("exists already"), "{refused}");
    assert_eq!(refused.advice_in(Dialect::Python).unwrap(), "pass `force=True` to replace it");
}

#[test]
fn names_are_checked_before_files_are_opened() {
    let mut score = Score::new(TruthFile::new("gone"), PredictionFile::new("gone"));
    score.group_by = vec!["colour".to_owned()];
    let refused = score.run(&Progress::new()).unwrap_err();
    assert!(matches!(refused, Error::Setting { setting: "group_by", .. }), "{refused}");
    score.group_by.clear();
    score.ci = Some(120.0);
    assert!(matches!(score.run(&Progress::new()).unwrap_err(), Error::Setting { setting: "ci", .. }));
}

#[test]
fn stopped_work_says_so() {
    let scene = Scene::new();
    let progress = Progress::new();
    progress.stop();
    let stopped = scene.score("good.jsonl").run(&progress).unwrap_err();
    assert!(cuemark_core::whole_message(&stopped).contains("stopped"), "{stopped}");
}

#[test]
fn one_file_is_better_than_another() {
    let scene = Scene::new();
    let compare: Compare = serde_json::from_value(json!({
        "truth": { "path": scene.path("truth.jsonl") }, "files": [scene.path("half.jsonl"), scene.path("good.jsonl")],
    }))
    .unwrap();
    let compared = compare.run(&Progress::new()).unwrap();
    let found = &compared.pairs[0].metrics[0].comparison;
    assert_eq!((found.a, found.b, found.wins, found.losses), (0.5, 1.0, 1, 0));
}

#[test]
fn every_pair_of_three_files_is_compared_and_p_values_are_corrected() {
    let scene = Scene::new();
    let files = ["half.jsonl", "good.jsonl", "half.jsonl"].map(|name| scene.path(name));
    let compare: Compare =
        serde_json::from_value(json!({ "truth": { "path": scene.path("truth.jsonl") }, "files": files })).unwrap();
    let compared = compare.run(&Progress::new()).unwrap();
    let pairs: Vec<(usize, usize)> = compared.pairs.iter().map(|pair| (pair.a, pair.b)).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
    for pair in &compared.pairs {
        let test = &pair.metrics[0];
        assert!(test.p_corrected >= test.comparison.p_value, "{test:?}");
    }
    let alone = Compare { files: compare.files[..1].to_vec(), ..compare };
    assert!(matches!(alone.run(&Progress::new()).unwrap_err(), Error::Setting { setting: "files", .. }));
}

#[test]
fn a_file_for_other_queries_is_refused_by_every_verb_and_a_lenient_request_scores_it() {
    let scene = Scene::new();
    scene.write("other.jsonl", &[json!({ "qid": "x", "predictions": [[2.0, 6.0]] })]);
    let mut score = scene.score("other.jsonl");
    let refused = score.run(&Progress::new()).unwrap_err();
    assert!(matches!(refused, Error::Mismatch { .. }), "{refused}");
    assert!(refused.advice_in(Dialect::Terminal).unwrap().ends_with("pass `--lenient`"));
    let compare: Compare = serde_json::from_value(json!({
        "truth": { "path": scene.path("truth.jsonl") }, "files": [scene.path("good.jsonl"), scene.path("other.jsonl")],
    }))
    .unwrap();
    assert!(matches!(compare.run(&Progress::new()).unwrap_err(), Error::Mismatch { .. }));
    score.scoring.lenient = true;
    let scored = score.run(&Progress::new()).unwrap();
    assert!(scored.notes[0].text.ends_with("scored all the same"), "{:?}", scored.notes);
}
