//! `cuemark report` as a person meets it.

use std::process::{Command, Output};

use cuemark_testkit::{fixture, shared};
use serde_json::Value;

fn cuemark(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    serde_json::from_str(&cuemark_testkit::succeed(command.args(arguments).arg("--json"))).unwrap()
}

#[test]
fn any_prediction_file_gets_its_trust_card() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let (truth, pred) = (fixture("cli/truth.jsonl"), fixture("cli/a.jsonl"));
    let arguments = [
        "report",
        "--pred",
        pred.as_str(),
        "--truth",
        truth.as_str(),
        "--train",
        truth.as_str(),
        "--out",
        out.to_str().unwrap(),
    ];
    let found = json(&arguments);
    // By hand: the overlaps of the first answers are 1, 0.5, 0 and none.
    let card = &found["cards"][0];
    assert_eq!((card["name"]["model"].as_str(), card["score"]["value"].as_f64()), (Some("a"), Some(0.5)));
    let checks: Vec<&str> =
        card["checks"].as_array().unwrap().iter().filter_map(|check| check["name"].as_str()).collect();
    assert!(checks.contains(&"over blind baselines") && checks.contains(&"verb masked"), "{checks:?}");
    assert_eq!(found["boards"][0]["rows"].as_array().unwrap().len(), 6, "the file and five baselines");
    for name in ["report.html", "report.md", "report.tex", "report.csv", "report.json"] {
        assert!(out.join(name).metadata().unwrap().len() > 100, "{name}");
    }
    let again = cuemark(&arguments);
    assert_eq!(again.status.code(), Some(1), "nothing is overwritten unasked");
    assert!(String::from_utf8_lossy(&again.stderr).contains("report.html"));
}

#[test]
fn a_report_on_nothing_is_refused_with_advice() {
    let output = cuemark(&["report", "--out", "nowhere"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: there is nothing to report on") && said.contains("hint: name run folders"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let output = cuemark(&["report", folder.path().to_str().unwrap(), "--out", "nowhere"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no evaluated run"));
}

/// What the section about a dataset must hold whatever the dataset is.
fn examine(name: &str, root: &str, splits: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let found = json(&["report", "--dataset", name, "--root", root, "--out", folder.path().to_str().unwrap()]);
    let places = found["datasets"][0]["audit"]["places"].as_array().unwrap();
    let named: Vec<&str> = places.iter().filter_map(|place| place["split"].as_str()).collect();
    assert_eq!(named, splits, "{name}");
    assert!(!found["datasets"][0]["audit"]["baselines"].as_array().unwrap().is_empty(), "{name} has baselines");
}

#[test]
fn a_dataset_alone_shows_what_it_invites() {
    examine("charades-cd", fixture("datasets/charades-cd").as_str(), &["train", "val", "test-iid", "test-ood"]);
}

#[test]
fn published_datasets_show_what_they_invite() {
    let Some(data) = shared("data/charades-cd") else { return };
    examine("charades-cd", data.as_str(), &["train", "val", "test-iid", "test-ood"]);
}
