//! The files of `docs/your-predictions.md`: one per layout, the same answers, the same numbers.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{CheckFile, Convert, PredictionFile, Progress, Score, TruthFile, TruthReading};

fn sample(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/your-predictions").join(name)
}

/// R@1 at 0.5 and 0.7, R@5 at 0.5 and mIoU, in percent.
fn numbers(truth: &Utf8Path, predictions: &Utf8Path, metrics: &str) -> Vec<f64> {
    let mut score = Score::new(TruthFile::new(truth), PredictionFile::new(predictions));
    score.scoring.metrics = Some(metrics.to_owned());
    let scored = score.run(&Progress::new()).unwrap_or_else(|error| panic!("{truth} and {predictions}: {error}"));
    let columns = scored.evaluation.columns.iter();
    columns.map(|column| (1e4 * column.mean().unwrap()).round() / 100.0).collect()
}

const METRICS: &str = "R1@0.5,R1@0.7,R5@0.5,mIoU";
// By hand: the first answers overlap by 1, 0.8, 0 and 0.5; the second answer to query 2 is right.
const EXPECTED: [f64; 4] = [75.0, 50.0, 100.0, 57.5];

const PREDICTIONS: [&str; 8] = [
    "cuemark.jsonl",
    "qvhighlights.jsonl",
    "no-ids.jsonl",
    "predictions.csv",
    "no-ids.csv",
    "activitynet.json",
    "run.trec",
    "charades.txt",
];

#[test]
fn every_layout_gives_the_numbers_that_the_page_promises() {
    for truth in ["truth.jsonl", "truth.csv", "truth-charades.txt", "labelstudio.json"] {
        for predictions in PREDICTIONS {
            assert_eq!(numbers(&sample(truth), &sample(predictions), METRICS), EXPECTED, "{truth} and {predictions}");
        }
    }
    let svmr = "SVMR:R@1,IoU=0.5,SVMR:R@1,IoU=0.7,SVMR:R@5,IoU=0.5";
    assert_eq!(numbers(&sample("truth.jsonl"), &sample("tvr.json"), svmr), [75.0, 50.0, 100.0]);
}

#[test]
fn every_layout_converts_to_every_other_and_keeps_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    for from in PREDICTIONS {
        for to in ["a.jsonl", "a.csv", "a.trec", "a.txt"] {
            let out = folder.join(format!("{from}-{to}"));
            let mut convert = Convert::new(sample(from), &out);
            convert.from = (from == "charades.txt").then(|| "charades".to_owned());
            convert.truth = Some(sample("truth.jsonl"));
            match convert.run(&Progress::new()) {
                Ok(done) => {
                    assert_eq!((done.kind, done.queries, done.moments), ("predictions", 4, 8), "{from} to {to}");
                }
                // Lists that never had a sentence have none to be written by, and runs without a video none to be joined by.
                Err(error) if to == "a.txt" => {
                    assert!(
                        error.to_string().contains("no sentence") || error.to_string().contains("no video"),
                        "{error}"
                    );
                    continue;
                }
                Err(error) => panic!("{from} to {to}: {error}"),
            }
            assert_eq!(numbers(&sample("truth.jsonl"), &out, METRICS), EXPECTED, "{from} to {to}");
        }
    }
    for to in ["t.jsonl", "t.csv"] {
        let out = folder.join(to);
        let done = Convert::new(sample("labelstudio.json"), &out).run(&Progress::new()).unwrap();
        assert_eq!((done.kind, done.queries, done.moments), ("truth", 4, 4));
        assert_eq!(numbers(&out, &sample("cuemark.jsonl"), METRICS), EXPECTED, "{to}");
    }
}

#[test]
fn moments_are_written_for_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    let several = Convert::new(sample("qvhighlights.jsonl"), folder.join("all.vtt")).run(&Progress::new()).unwrap_err();
    assert!(several.to_string().contains("3 videos"), "{several}");
    assert!(!folder.join("all.vtt").exists());
    let one = Convert {
        video: Some("garden".to_owned()),
        top: Some(1),
        ..Convert::new(sample("qvhighlights.jsonl"), folder.join("garden.vtt"))
    };
    one.run(&Progress::new()).unwrap();
    let cues = std::fs::read_to_string(folder.join("garden.vtt")).unwrap();
    assert!(cues.contains("00:00:20.000 --> 00:00:30.000\na dog jumps over the fence\n"), "{cues}");
    for name in ["a.edl", "a.fiftyone.json", "a.labelstudio.json"] {
        let done = Convert::new(sample("truth.jsonl"), folder.join(name)).run(&Progress::new()).unwrap();
        assert_eq!(done.moments, 4, "{name}");
    }
    let unknown = Convert::new(sample("truth.jsonl"), folder.join("a.docx")).run(&Progress::new()).unwrap_err();
    assert!(matches!(unknown, cuemark::Error::Setting { setting: "to", .. }), "{unknown}");
}

#[test]
fn a_file_of_ones_own_is_checked_line_by_line() {
    let check = |path: Utf8PathBuf| CheckFile { path, reading: TruthReading::default() }.run(&Progress::new()).unwrap();
    let clean = check(sample("truth.jsonl"));
    assert!(clean.is_ok(), "{clean:?}");
    assert_eq!((clean.layout.as_deref(), clean.queries, clean.videos, clean.moments), (Some("cuemark-jsonl"), 4, 3, 4));
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("mine.jsonl");
    let lines = [
        r#"{"qid": 1, "query": "a", "video": "v", "duratoin": 9, "spans": [[0, 5]]}"#,
        r#"{"qid": 2, "query": "b", "video": "v", "spans": [[5, 2]]}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let found = check(path.clone());
    let said: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    assert!(!found.is_ok());
    assert!(
        said.iter().any(|note| note.contains("`duratoin`") && note.contains("did you mean `duration`?")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|note| note.contains("1 true span ends before it starts") && note.contains("line 2, query `2`")),
        "{said:?}"
    );
    std::fs::write(&path, r#"{"qid": 1, "query": "a", "video": "v", "spans": [[0, "x"]]}"#).unwrap();
    let broken = check(path);
    assert!(broken.problem.as_ref().is_some_and(|problem| problem.contains(":1: `spans[0]")), "{broken:?}");
}
