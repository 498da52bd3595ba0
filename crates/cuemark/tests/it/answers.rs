//! Free-text answers, scored as they are.

use camino::Utf8PathBuf;
use cuemark::{PredictionFile, Progress, Score, TruthFile};
use serde_json::{Value, json};

fn scored(lines: &[Value], change: impl FnOnce(&mut Score)) -> cuemark::Result<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
    let write = |name: &str, lines: &[Value]| {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        std::fs::write(path(name), lines.join("\n")).unwrap();
    };
    let truth = |qid: &str, spans: Value| json!({ "qid": qid, "query": "a ball spins", "video": "v", "duration": 20.0, "spans": spans });
    write("truth.jsonl", &[truth("1", json!([[2.0, 6.0]])), truth("2", json!([[2.0, 6.0]])), truth("3", json!([]))]);
    write("answers.jsonl", lines);
    let mut score = Score::new(TruthFile::new(path("truth.jsonl")), PredictionFile::new(path("answers.jsonl")));
    change(&mut score);
    Ok(serde_json::to_value(score.run(&Progress::new())?).unwrap())
}

fn answers() -> [Value; 3] {
    [
        json!({ "qid": "1", "text": "It spins from 10% to 30% of the video." }),
        json!({ "qid": "2", "text": "Between 00:12 and 00:16." }),
        json!({ "qid": "3", "text": "The video does not show a ball between 0 and 20 seconds." }),
    ]
}

#[test]
fn percent_is_of_the_truths_duration_and_failures_are_told_by_kind() {
    let found = scored(&answers(), |_| {}).unwrap();
    assert_eq!(found["metrics"]["R@1,IoU=0.7"], 0.5, "one of the two that have a moment is right");
    assert_eq!(
        (&found["metrics"]["Refusal:precision"], &found["metrics"]["Refusal:recall"]),
        (&json!(1.0), &json!(1.0))
    );
    assert_eq!(found["abstention"]["unanswerable"], 1);
    let notes = found["notes"].to_string();
    assert!(notes.contains("answers: 2 of 3 texts name a span; 1 (33.3 %) name none: refusal 1"), "{notes}");
}

#[test]
fn a_parser_and_fields_can_be_forced_and_are_checked_first() {
    let lines = [
        json!({ "doc": { "id": 1 }, "said": "10 to 30" }),
        json!({ "doc": { "id": 2 }, "said": "10 to 30" }),
        json!({ "doc": { "id": 3 }, "said": "" }),
    ];
    let found = scored(&lines, |score| {
        let reading = &mut score.predictions.reading;
        reading.format = Some("answers".to_owned());
        reading.parser = Some("percent".to_owned());
        reading.id_field = Some("doc.id".to_owned());
        reading.text_field = Some("said".to_owned());
    });
    assert_eq!(found.unwrap()["metrics"]["R@1,IoU=0.7"], 1.0);
    let refused = scored(&answers(), |score| {
        score.truth = TruthFile::new("gone");
        score.predictions.reading.parser = Some("(".to_owned());
    });
    assert!(refused.unwrap_err().to_string().contains("neither a parser nor a pattern"));
}
