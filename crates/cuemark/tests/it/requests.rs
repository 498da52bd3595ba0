//! A request has the same defaults wherever it comes from.
#![cfg(feature = "clap")]

use clap::Parser;
use cuemark::{Ask, Compare, CreateIndex, PredictionFile, Score, TruthFile};
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
    assert_eq!(typed, written(json!({ "truth": { "path": "t" }, "a": "a", "b": "b" })));
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
