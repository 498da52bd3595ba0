//! The committed schemas accept what we read and write, and refuse what we refuse.

use crate::support::{PREDICTIONS, fixture_path, folder, options, read_bytes};
use cuemark_core::RowPolicy;
use cuemark_formats::{Overwrite, PredictionFormat, Source, WholeFile, read_truth, write_truth};
use jsonschema::Validator;
use serde_json::Value;

fn schema(name: &str) -> Validator {
    let path = format!("{}/../../docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::validator_for(&schema).unwrap()
}

fn accepts_every_line(schema: &Validator, text: &str) {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let value = serde_json::from_str(line).unwrap();
        assert!(
            schema.is_valid(&value),
            "{line}: {:?}",
            schema.iter_errors(&value).map(|e| e.to_string()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_fixtures_are_valid() {
    for name in ["truth.jsonl", "truth-bad-rows.jsonl"] {
        accepts_every_line(&schema("truth"), &std::fs::read_to_string(fixture_path(name)).unwrap());
    }
    for name in ["cuemark.jsonl", "cuemark-tasks.jsonl"] {
        accepts_every_line(&schema("prediction"), &std::fs::read_to_string(fixture_path(name)).unwrap());
    }
}

#[test]
fn what_we_write_is_valid() {
    let (_guard, folder) = folder();
    for (name, _) in PREDICTIONS {
        let path = folder.join(name);
        let (_, predictions) =
            cuemark_formats::read_predictions(&crate::support::fixture(name), &options(None)).unwrap();
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        cuemark_formats::write_predictions(&predictions, PredictionFormat::Cuemark, &mut out).unwrap();
        out.finish().unwrap();
        accepts_every_line(&schema("prediction"), &std::fs::read_to_string(path).unwrap());
    }
    let path = folder.join("truth.jsonl");
    let truths = read_truth(&crate::support::fixture("truth.jsonl"), RowPolicy::Keep).unwrap().queries;
    let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
    write_truth(&truths, &mut out).unwrap();
    out.finish().unwrap();
    accepts_every_line(&schema("truth"), &std::fs::read_to_string(path).unwrap());
}

#[test]
fn a_broken_line_is_refused_by_the_schema_and_by_the_reader() {
    let predictions = [
        r#"{"predictions":[]}"#,
        r#"{"qid":"1"}"#,
        r#"{"qid":null,"predictions":[]}"#,
        r#"{"qid":1.5,"predictions":[]}"#,
        r#"{"qid":1,"predictions":{}}"#,
        r#"{"qid":1,"predictions":[{"score":1}]}"#,
        r#"{"qid":1,"predictions":[{"span":[1],"score":1}]}"#,
        r#"{"qid":1,"predictions":[{"span":[1,2],"score":null}]}"#,
        r#"{"qid":1,"predictions":[{"span":[1,"2"]}]}"#,
        r#"{"qid":1,"predictions":[{"video":7,"span":[1,2]}]}"#,
        r#"{"qid":1,"predictions":[[1]]}"#,
        r#"{"qid":1,"predictions":[[1,2,3,4]]}"#,
        r#"{"qid":1,"predictions":[7]}"#,
        r#"{"qid":1,"task":"MR","predictions":[]}"#,
        r#"{"qid":1,"saliency":[null],"predictions":[]}"#,
        r#"{"qid":1,"video":"a","vid":"b","predictions":[]}"#,
        "[]",
    ];
    for line in predictions {
        assert!(!schema("prediction").is_valid(&serde_json::from_str(line).unwrap()), "{line}");
        assert!(read_bytes(line.as_bytes(), Some(PredictionFormat::Cuemark)).is_err(), "{line}");
    }
    let truths = [
        r#"{"query":"x"}"#,
        r#"{"qid":[]}"#,
        r#"{"qid":1,"query":7}"#,
        r#"{"qid":1,"spans":[[0,1]]}"#,
        r#"{"qid":1,"duration":3}"#,
        r#"{"qid":1,"video":"a","duration":-3}"#,
        r#"{"qid":1,"video":"a","spans":[[0,1,2]]}"#,
        r#"{"qid":1,"moments":[{"video":"a"}]}"#,
        r#"{"qid":1,"moments":[{"video":"a","span":[0,1],"relevance":101}]}"#,
        r#"{"qid":1,"pool":["a",1]}"#,
        r#"{"qid":1,"kind":1}"#,
        r#"{"qid":1,"highlights":{"clip_len":0,"clips":[],"ratings":[]}}"#,
        r#"{"qid":1,"highlights":{"clip_len":2,"clips":[-1],"ratings":[[1]]}}"#,
        r#"{"qid":1,"highlights":{"clip_len":2,"clips":[1],"ratings":[[5]]}}"#,
        r#"{"qid":1,"highlights":{"clips":[],"ratings":[]}}"#,
    ];
    let (_guard, folder) = folder();
    let path = folder.join("truth.jsonl");
    for line in truths {
        assert!(!schema("truth").is_valid(&serde_json::from_str(line).unwrap()), "{line}");
        std::fs::write(&path, line).unwrap();
        assert!(read_truth(&Source::new(&path), RowPolicy::Keep).is_err(), "{line}");
    }
}
