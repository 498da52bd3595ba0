//! Truth in our own JSON Lines, as CSV and as qrels, stated by hand.

use crate::support::{fixture, fixture_path, folder};
use cuemark_core::{Advise as _, Dialect};
use cuemark_core::{Relevance, RowFault, RowPolicy, Split, Truth};
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile, read_qrels, read_truth, read_truth_csv, write_truth};
use serde_json::json;

/// A query's moments as `(video, start, end, relevance)`.
fn moments(truth: &Truth) -> Vec<(&str, f64, f64, Option<f64>)> {
    let each = truth.moments.iter();
    each.map(|graded| {
        let moment = &graded.moment;
        let relevance = graded.relevance.map(Relevance::value);
        (moment.video.as_str(), moment.span.start(), moment.span.end(), relevance)
    })
    .collect()
}

fn videos(split: &Split) -> Vec<(&str, Option<f64>)> {
    split.videos.iter().map(|video| (video.id.as_str(), video.duration)).collect()
}

fn written(truths: &[Truth]) -> String {
    let (_guard, folder) = folder();
    let path = folder.join("out.jsonl");
    let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
    write_truth(truths, &mut out).unwrap();
    out.finish().unwrap();
    std::fs::read_to_string(path).unwrap()
}

fn truth_of(text: &str, policy: RowPolicy) -> Result<Split, ReadError> {
    let (_guard, folder) = folder();
    let path = folder.join("truth.jsonl");
    std::fs::write(&path, text).unwrap();
    read_truth(&Source::new(path), policy)
}

#[test]
fn our_own_truth_is_read_with_everything_it_carries() {
    let split = read_truth(&fixture("truth.jsonl"), RowPolicy::Keep).unwrap();
    assert_eq!((split.name.as_str(), split.file.as_str(), split.pairs()), ("truth", "truth.jsonl", 7));
    let [fridge, bird, no, dog, secret] = split.queries.as_slice() else { panic!("{split:?}") };
    assert_eq!(moments(fridge), [("kitchen_01", 2.4, 9.1, None), ("kitchen_01", 12.0, 12.5, None)]);
    assert_eq!((fridge.query.id.as_str(), fridge.duration()), ("42", Some(30.96)));
    let birds = [("garden", 1.0, 4.5, Some(3.0)), ("park", 0.0, 2.0, Some(0.0)), ("park", 5.0, 6.0, None)];
    assert_eq!(moments(bird), birds);
    assert_eq!((bird.query.id.as_str(), bird.video.as_ref()), ("7", None));
    assert_eq!(bird.pool.as_ref().map(Vec::len), Some(3));
    assert_eq!((no.query.text.as_str(), no.kind.as_deref()), ("Ann: \"no!\"", Some("vt")));
    assert_eq!(no.extra.get("source"), Some(&json!({"page": 3})));
    let highlights = dog.highlights.as_ref().unwrap();
    assert_eq!((highlights.clip_len.seconds(), highlights.clips.as_slice()), (2.0, [1, 2, 3].as_slice()));
    assert_eq!(highlights.ratings, [[4, 3, 4], [2, 0, 1], [1, 1, 1]]);
    assert!(secret.moments.is_empty());
    let expected = [
        ("kitchen_01", Some(30.96)),
        ("garden", None),
        ("park", None),
        ("show_s01e01_seg02_clip_00", Some(61.46)),
        ("pool", Some(150.0)),
    ];
    assert_eq!(videos(&split), expected);
}

#[test]
fn truth_is_written_back_without_a_loss() {
    let split = read_truth(&fixture("truth.jsonl"), RowPolicy::Keep).unwrap();
    let text = written(&split.queries);
    assert_eq!(truth_of(&text, RowPolicy::Keep).unwrap().queries, split.queries);
    // Not only what we read survives, but what the file says: every field but `vid`, which is written as `video`.
    let normal = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(&line.replace("\"vid\"", "\"video\"")).unwrap();
        let fields = line.as_object_mut().unwrap();
        let qid = fields["qid"].to_string().trim_matches('"').to_owned();
        fields.insert("qid".to_owned(), qid.into());
        if !fields.contains_key("moments") {
            fields.entry("spans").or_insert(json!([]));
        }
        as_floats(line)
    };
    let original = std::fs::read_to_string(fixture_path("truth.jsonl")).unwrap();
    for (before, after) in original.lines().zip(text.lines()) {
        assert_eq!(normal(before), normal(after));
    }
}

/// JSON in which `2` and `2.0` are the same.
fn as_floats(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(as_floats).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, as_floats(value))).collect())
        }
        other => other,
    }
}

#[test]
fn bad_rows_are_treated_as_the_policy_says() {
    let source = fixture("truth-bad-rows.jsonl");
    let kept = read_truth(&source, RowPolicy::Keep).unwrap();
    assert_eq!(moments(&kept.queries[0]), [("a", 3.5, 5.0, None)]);
    assert_eq!((kept.rows.met(RowFault::Reversed), kept.rows.met(RowFault::EndsAfterVideo)), (1, 1));
    let clamped = read_truth(&source, RowPolicy::Clamp).unwrap();
    assert_eq!(moments(&clamped.queries[1]), [("a", 8.0, 10.0, None), ("a", 1.0, 2.0, None)]);
    let skipped = read_truth(&source, RowPolicy::Skip).unwrap();
    assert_eq!((skipped.queries.len(), skipped.pairs(), skipped.rows.dropped), (2, 1, 2));
    let error = read_truth(&source, RowPolicy::Error).unwrap_err();
    assert!(error.to_string().ends_with("truth-bad-rows.jsonl:1: `spans[0]`: 3.5 s is before start 5 s"), "{error}");
    assert!(error.advice_in(Dialect::Terminal).unwrap().contains("--bad-rows keep"));
}

#[test]
fn broken_truth_names_the_line_and_the_field() {
    let good = "{\"qid\":1,\"query\":\"x\",\"video\":\"a\",\"spans\":[[0,1]]}\n";
    let cases = [
        ("{\"query\":\"x\"}", "`qid`: is missing"),
        ("{\"qid\":2.5}", "`qid`: `2.5` is not text or a whole number"),
        ("{\"qid\":1,\"video\":\"b\"}", "`qid`: `1` stands on line 1 already"),
        ("{\"qid\":\"1\"}", "`qid`: `1` stands on line 1 already"),
        ("{\"qid\":2,\"spans\":[[0,1]]}", "`spans[0].video`: is missing"),
        ("{\"qid\":2,\"video\":\"a\",\"spans\":[[0,NaN]]}", "`spans[0][1]`: `NaN` is not a number"),
        ("{\"qid\":2,\"video\":\"a\",\"spans\":[[0,1e999]]}", "`spans[0][1]`: `1e999` is not a finite number"),
        ("{\"qid\":2,\"video\":\"a\",\"spans\":[[0]]}", "`spans[0]`: a span is a start and an end"),
        ("{\"qid\":2,\"video\":\"a\",\"spans\":[[0,1,2]]}", "`spans[0][2]`: there is a number too many (2 at most)"),
        ("{\"qid\":2,\"video\":\"a\",\"duration\":-1}", "`duration`: -1 s is not a duration"),
        ("{\"qid\":2,\"duration\":1}", "`duration`: whose duration it is is not said: `video` is missing"),
        ("{\"qid\":2,\"moments\":[{\"video\":\"a\"}]}", "`moments[0].span`: is missing"),
        (
            "{\"qid\":2,\"moments\":[{\"video\":\"a\",\"span\":[0,1],\"relevance\":-1}]}",
            "`moments[0].relevance`: relevance -1 is not between 0 and 100",
        ),
        ("{\"qid\":2,\"qid\":3}", "`qid`: the field stands in the record twice"),
        ("{\"qid\":2,\"highlights\":{\"clip_len\":0}}", "`highlights.clip_len`: 0 s is not the length of a clip"),
        (
            "{\"qid\":2,\"highlights\":{\"clip_len\":2,\"clips\":[1],\"ratings\":[]}}",
            "`highlights`: 1 clips have 0 lists of ratings",
        ),
        (
            "{\"qid\":2,\"highlights\":{\"clip_len\":2,\"clips\":[1],\"ratings\":[[5]]}}",
            "`highlights.ratings[0][0]`: 5 is above 4",
        ),
        ("{\"qid\":2", "`qid`: the end of the text is not `,` or `}`"),
        ("[]", "`.`: `[` is not an object"),
        ("{\"qid\":2} {}", "`.`: `{` is not the end"),
    ];
    for (line, problem) in cases {
        let error = truth_of(&format!("{good}\n{line}\n"), RowPolicy::Keep).unwrap_err().to_string();
        assert!(error.ends_with(&format!("truth.jsonl:3: {problem}")), "{line}: {error}");
    }
}

#[test]
fn truth_as_csv_has_one_moment_a_row() {
    let split = read_truth_csv(&fixture("truth.csv"), RowPolicy::Keep).unwrap();
    let [waves, sits] = split.queries.as_slice() else { panic!("{split:?}") };
    assert_eq!(
        (waves.query.text.as_str(), waves.kind.as_deref(), waves.duration()),
        ("she waves, twice", Some("v"), Some(20.0))
    );
    assert_eq!(moments(waves), [("park", 1.5, 4.0, None)]);
    assert_eq!(waves.extra.get("page"), Some(&json!("9")));
    assert_eq!(moments(sits), [("park", 0.0, 2.5, Some(3.0)), ("street", 4.0, 6.0, Some(1.0))]);
    assert_eq!(sits.video, None, "it is about two videos");
    assert_eq!(videos(&split), [("park", Some(20.0)), ("street", Some(11.5))]);
}

#[test]
fn qrels_are_graded_truth() {
    let split = read_qrels(&fixture("qrels.trec")).unwrap();
    let [first, second] = split.queries.as_slice() else { panic!("{split:?}") };
    assert_eq!(moments(first), [("kitchen_01", 2.0, 9.25, Some(3.0)), ("kitchen_02", 0.5, 3.5, Some(0.0))]);
    assert_eq!(moments(second), [("garden", 4.0, 8.5, Some(1.5))]);
    assert_eq!(first.right().count(), 1);
}
