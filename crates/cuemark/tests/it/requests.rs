//! A request has the same defaults wherever it comes from.
#![cfg(feature = "clap")]

use clap::Parser;
use cuemark::{
    Among, Ask, AuditSplits, Compare, CreateIndex, Extract, FeatureVariant, FillCell, MakePools, MakeSplits,
    NamedDataset, NamesBy, Predict, PredictionFile, PublishedModel, Queries, QueryText, Reproduce, RewriteQueries,
    RunStudy, Score, SplitProtocol, StudySettings, TakeNamesOut, Train, TruthFile,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Parser)]
struct Line<R: clap::Args> {
    #[command(flatten)]
    request: R,
}

fn typed<R: clap::Args>(words: &[&str]) -> R {
    Line::<R>::try_parse_from(std::iter::once(&"cuemark").chain(words)).map(|line| line.request).unwrap()
}

fn written<R: DeserializeOwned>(value: Value) -> R {
    serde_json::from_value(value).unwrap()
}

/// The same request, written down and read back.
fn again<R: Serialize + DeserializeOwned>(request: &R) -> R {
    written(serde_json::to_value(request).unwrap())
}

#[test]
fn a_score_is_the_same_typed_written_and_made() {
    let made = Score::new(TruthFile::new("t.jsonl"), PredictionFile::new("p.jsonl"));
    assert_eq!(typed::<Score>(&["--truth", "t.jsonl", "--pred", "p.jsonl"]), made);
    assert_eq!(written::<Score>(json!({ "truth": { "path": "t.jsonl" }, "predictions": { "path": "p.jsonl" } })), made);
    let back: Score = written(serde_json::to_value(&made).unwrap());
    assert_eq!(back, made);
}

#[test]
fn a_comparison_is_the_same_typed_and_written() {
    let typed: Compare = typed(&["--truth", "t", "a", "b"]);
    assert_eq!(typed, written(json!({ "truth": { "path": "t" }, "files": ["a", "b"] })));
    assert_eq!((typed.ci, typed.resampling.resamples), (95.0, 10_000));
}

#[test]
fn a_question_is_the_same_typed_written_and_made() {
    let made = Ask::new("films", "a red ball");
    assert_eq!(typed::<Ask>(&["films", "a red ball"]), made);
    assert_eq!(written::<Ask>(json!({ "place": { "index": "films" }, "asking": { "sentence": "a red ball" } })), made);
}

#[test]
fn an_index_is_the_same_typed_written_and_made() {
    let made = CreateIndex::new("films");
    assert_eq!(typed::<CreateIndex>(&["films"]), made);
    assert_eq!(written::<CreateIndex>(json!({ "place": { "index": "films" } })), made);
}

#[test]
fn a_field_that_is_not_there_is_refused() {
    let value = json!({ "truth": { "path": "t", "fromat": "x" }, "predictions": { "path": "p" } });
    assert!(serde_json::from_value::<Score>(value).unwrap_err().to_string().contains("fromat"));
}

#[test]
fn splits_are_the_same_typed_written_and_made() {
    let made = MakeSplits::new(SplitProtocol::Cd, NamedDataset::new("charades-sta", "data"), "splits");
    let words = ["--protocol", "cd", "--dataset", "charades-sta", "--root", "data", "--out", "splits"];
    assert_eq!(typed::<MakeSplits>(&words), made);
    let written: MakeSplits = written(json!({
        "recipe": { "protocol": "cd" },
        "dataset": { "name": "charades-sta", "folder": { "root": "data" } },
        "out": "splits",
    }));
    assert_eq!(written, made);
    assert_eq!(again(&made), made);
}

#[test]
fn features_are_the_same_typed_written_and_made() {
    let made = Extract::new(["films"], "world-motion", "store");
    assert_eq!(typed::<Extract>(&["films", "--encoder", "world-motion", "--out", "store"]), made);
    let value = json!({ "videos": ["films"], "encoder": "world-motion", "out": "store" });
    assert_eq!(written::<Extract>(value.clone()), made);
    assert_eq!(again(&made), made);
    let mut share = value;
    share["shard"] = "2/4".into();
    assert_eq!(written::<Extract>(share.clone()).shard.to_string(), "2/4");
    share["shard"] = "5/4".into();
    assert!(serde_json::from_value::<Extract>(share).unwrap_err().to_string().contains("5/4"));
}

#[test]
fn a_training_is_the_same_typed_written_and_made() {
    let made = Train::new("run.toml");
    assert_eq!(typed::<Train>(&["run.toml"]), made);
    assert_eq!(written::<Train>(json!({ "run_file": "run.toml" })), made);
    assert_eq!(again(&made), made);
}

#[test]
fn answers_are_the_same_typed_written_and_made() {
    let made = Predict::with_run("out/run", "test-iid", "p.jsonl");
    assert_eq!(typed::<Predict>(&["out/run", "--split", "test-iid", "--out", "p.jsonl"]), made);
    let value = json!({ "run_folder": "out/run", "model": { "split": "test-iid" }, "out": "p.jsonl" });
    assert_eq!(written::<Predict>(value), made);
    assert_eq!(again(&made), made);
    let guessed = Predict::with_baseline("predict-all", "t.jsonl", "p.jsonl");
    assert_eq!(typed::<Predict>(&["--baseline", "predict-all", "--truth", "t.jsonl", "--out", "p.jsonl"]), guessed);
    let mut published = PublishedModel::new("2d-tan", "theirs.pt");
    published.allow_missing.push("head.".to_owned());
    let made = Predict::with_checkpoint(published, "t.jsonl", "p.jsonl");
    let words = ["--model", "2d-tan", "--checkpoint", "theirs.pt", "--allow-missing", "head.", "--truth", "t.jsonl"];
    assert_eq!(typed::<Predict>(&[&words[..], &["--out", "p.jsonl"]].concat()), made);
    assert_eq!(again(&made), made);
    let blind: Predict =
        typed(&["out/run", "--split", "val", "--out", "p.jsonl", "--blind", "zeroed", "--among", "pool"]);
    assert_eq!((blind.model.blind, blind.model.among), (Some(FeatureVariant::Zeroed), Among::Pool));
}

#[test]
fn a_study_is_the_same_written_and_made_and_its_settings_typed() {
    let made = RunStudy::new("overall");
    assert_eq!(written::<RunStudy>(json!({ "matrix": "overall" })), made);
    assert_eq!(again(&made), made);
    assert_eq!(typed::<StudySettings>(&[]), made.settings);
    assert_eq!(typed::<StudySettings>(&["--memory", "2GiB"]).memory, Some(2 << 30));
    let job = FillCell::new("out/cells/a");
    assert_eq!(written::<FillCell>(json!({ "folder": "out/cells/a" })), job);
    assert!(serde_json::from_value::<FillCell>(json!({ "folder": "a", "devise": "cpu" })).is_err());
}

#[test]
fn pools_and_rewritten_queries_are_the_same_typed_written_and_made() {
    let made = MakePools::new(Queries::new("q.jsonl"), "p.jsonl");
    assert_eq!(typed::<MakePools>(&["--in", "q.jsonl", "--out", "p.jsonl"]), made);
    assert_eq!(written::<MakePools>(json!({ "queries": { "path": "q.jsonl" }, "out": "p.jsonl" })), made);
    assert_eq!(again(&made), made);
    let made = RewriteQueries::new(QueryText::Shuffle, Queries::new("q.jsonl"), "r.jsonl");
    assert_eq!(typed::<RewriteQueries>(&["--mode", "shuffle", "--in", "q.jsonl", "--out", "r.jsonl"]), made);
    let value = json!({ "mode": "shuffle", "queries": { "path": "q.jsonl" }, "out": "r.jsonl" });
    assert_eq!(written::<RewriteQueries>(value), made);
    assert_eq!(typed::<AuditSplits>(&["splits"]), AuditSplits::new("splits"));
    assert_eq!(written::<AuditSplits>(json!({ "dir": "splits" })), AuditSplits::new("splits"));
}

#[test]
fn a_reproduction_and_queries_without_names_are_the_same_typed_written_and_made() {
    let made = Reproduce::new("vslnet", "youcook2");
    assert_eq!(typed::<Reproduce>(&["vslnet", "youcook2"]), made);
    assert_eq!(written::<Reproduce>(json!({ "method": "vslnet", "dataset": "youcook2" })), made);
    assert_eq!(again(&made), made);
    let mut asked = TakeNamesOut::new(Queries::new("q.jsonl"), "out");
    assert_eq!(typed::<TakeNamesOut>(&["--in", "q.jsonl", "--out", "out"]), asked);
    assert_eq!(written::<TakeNamesOut>(json!({ "queries": { "path": "q.jsonl" }, "out": "out" })), asked);
    asked.names_by = NamesBy::Program("ner --fast".to_owned());
    assert_eq!(typed::<TakeNamesOut>(&["--in", "q.jsonl", "--out", "out", "--names-by", "program:ner --fast"]), asked);
    assert_eq!(again(&asked), asked);
}
