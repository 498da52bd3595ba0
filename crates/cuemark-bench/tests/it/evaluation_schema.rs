//! `docs/schemas/evaluation.schema.json` accepts what a run leaves and refuses what the reader refuses.

use camino::Utf8PathBuf;
use cuemark_bench::report::{About, Evaluated, Measure};
use cuemark_core::{Extra, Prediction, Predictions, Progress, Query, QueryPredictions, Span, Truth, Video};
use cuemark_formats::Overwrite;
use cuemark_train::OutOfReach;
use serde_json::{Value, json};

/// Four queries, the last unanswered, one answered right.
fn evaluated() -> (Vec<Truth>, Evaluated) {
    let span = |start, end| Span::new(start, end).unwrap();
    let truth = |k: usize| {
        let query = Query { id: k.to_string().as_str().into(), text: "she opens the door".to_owned() };
        Truth::single(query, Video::new(format!("v{k}").as_str(), 30.0), [span(5.0, 10.0)])
    };
    let truths: Vec<Truth> = (0..4).map(truth).collect();
    let list = |k: usize| QueryPredictions {
        query: truths[k].query.id.clone(),
        ranked: vec![Prediction { video: None, span: span(5.0, 10.0 + k as f64), score: Some(0.5) }],
        saliency: None,
        extra: Extra::default(),
    };
    let predictions = Predictions::any((0..3).map(list).collect());
    let about = About { model: "mine".into(), split: "test".into(), seed: Some(3), ..About::default() };
    let found = Measure::default().run(about, &truths, &predictions, &Progress::new()).unwrap();
    (truths, found)
}

#[test]
fn what_a_run_leaves_fits_and_what_the_reader_refuses_does_not() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/evaluation.schema.json"));
    let schema = jsonschema::validator_for(&serde_json::from_str(&text.unwrap()).unwrap()).unwrap();
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let (truths, mut found) = evaluated();
    for out_of_reach in [None, Some(OutOfReach { past_the_end: 1, too_short: 0, too_long: 0, moments: 4 })] {
        found.out_of_reach = out_of_reach;
        let path = found.store(&folder.join("run"), &truths, Overwrite::Force).unwrap();
        let stored: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let errors: Vec<String> = schema.iter_errors(&stored).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }

    let whole = serde_json::to_value(&found).unwrap();
    let path = folder.join("changed.json");
    for (pointer, wrong) in [
        ("/version", json!(99)),
        ("/queries", json!(-1)),
        ("/metrics", json!({})),
        ("/metrics/mIoU/scores", json!("01x")),
        ("/metrics/mIoU/value", json!("high")),
        ("/first", json!(7)),
        ("/first/start", json!([1.0, "x"])),
        ("/truth", json!("../../x")),
        ("/about/kind", json!("oracle")),
        ("/intervals/resamples", json!(null)),
    ] {
        let mut value = whole.clone();
        *value.pointer_mut(pointer).unwrap() = wrong;
        assert!(!schema.is_valid(&value), "the schema takes {pointer}");
        std::fs::write(&path, value.to_string()).unwrap();
        assert!(Evaluated::read(&path).is_err(), "the reader takes {pointer}");
    }
    // Everything that the schema asks for, the reader asks for.
    for field in ["version", "about", "metrics", "intervals", "conventions", "truth", "pairing", "first"] {
        let mut value = whole.clone();
        value.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&value), "the schema does without {field}");
        std::fs::write(&path, value.to_string()).unwrap();
        assert!(Evaluated::read(&path).is_err(), "the reader does without {field}");
    }
}
