//! The laboratory's verbs on small material of our own: a world of a dozen films, a run of one epoch.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{
    AuditSplits, AuditWorld, Error, Extract, MakePools, MakeSplits, NamedDataset, Predict, Progress, Queries,
    QueryText, RewriteQueries, SplitProtocol, Train, WrittenPredictions,
};
use cuemark_core::{Advise as _, Dialect};
use cuemark_world::{WorldOptions, make};
use serde_json::json;

const RUN: &str = "
[model]
name = '2d-tan'
map = { pre_clips = 8, clips = 8, counts = [7] }
hidden = 16
lstm_layers = 1
kernel = 3
layers = 2
[data]
dataset = 'world'
root = 'nowhere'
word_width = 12
[train]
epochs = 9
batch = 8
rate = 3e-3
";

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

/// Charades-STA of sixty videos of thirty seconds below `folder`, and its durations beside it.
pub(crate) fn small_charades(folder: &Utf8Path) {
    let root = folder.join("charades");
    std::fs::create_dir(&root).unwrap();
    // One moment in each of sixty videos, later in each next one.
    let line = |n: usize| format!("V{n:02} {}.0 {}.5##a person sits down\n", n % 20, n % 20);
    for (name, range) in [("charades_sta_train.txt", 0..40), ("charades_sta_test.txt", 40..60)] {
        std::fs::write(root.join(name), range.map(line).collect::<String>()).unwrap();
    }
    let lengths: serde_json::Map<String, _> = (0..60).map(|n| (format!("V{n:02}"), json!(30.0))).collect();
    std::fs::write(folder.join("lengths.json"), json!(lengths).to_string()).unwrap();
}

/// A small world below `folder`, and a run file that learns from it once `data.root` is set.
fn world(folder: &Utf8Path) -> Train {
    let options = WorldOptions { videos: 16, length: 12.0, ..WorldOptions::default() };
    make(&options, &folder.join("world"), &Progress::new()).unwrap();
    std::fs::write(folder.join("run.toml"), RUN).unwrap();
    let mut train = Train::new(folder.join("run.toml"));
    train.out = Some(folder.join("run"));
    train.set = vec![format!("data.root={}", folder.join("world")), "train.epochs=1".to_owned()];
    train
}

#[test]
fn a_model_is_trained_and_answers_and_so_does_a_guess() {
    let (_guard, folder) = folder();
    let train = world(&folder);
    let trained = train.run(&Progress::new()).unwrap();
    assert_eq!((trained.model.as_str(), trained.stopped), ("2d-tan", false));
    assert!(trained.steps > 0 && trained.best.is_some());
    let refused = train.run(&Progress::new()).unwrap_err();
    assert!(refused.advice_in(Dialect::Python).unwrap().contains("resume=True"), "{refused}");

    let predict = Predict::with_run(folder.join("run"), "test-iid", folder.join("p.jsonl"));
    let written = predict.run(&Progress::new()).unwrap();
    let WrittenPredictions::Model { model, split, queries, .. } = &written else { panic!("{written:?}") };
    assert_eq!((model.as_str(), split.as_str()), ("2d-tan", "test-iid"));
    assert_eq!(std::fs::read_to_string(folder.join("p.jsonl")).unwrap().lines().count(), *queries);
    assert_eq!(serde_json::to_value(&written).unwrap()["out"], json!(folder.join("p.jsonl")));

    let splits = folder.join("world/splits");
    let mut guess = Predict::with_baseline("bias-mode", splits.join("test-iid.jsonl"), folder.join("g.jsonl"));
    let refused = guess.run(&Progress::new()).unwrap_err();
    assert_eq!(refused.advice_in(Dialect::Terminal).unwrap(), "pass `--train FILE`");
    guess.train = Some(splits.join("train.jsonl"));
    guess.run(&Progress::new()).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("g.jsonl")).unwrap().lines().count(), *queries);
}

#[test]
fn a_stopped_training_says_so_and_goes_on() {
    let (_guard, folder) = folder();
    let mut train = world(&folder);
    train.set[1] = "train.epochs=3".to_owned();
    let progress = Progress::new();
    progress.stop_at(2);
    let first = train.run(&progress).unwrap();
    assert!(first.stopped);
    train.resume = true;
    let second = train.run(&Progress::new()).unwrap();
    assert!(!second.stopped && second.steps > first.steps, "{second:?}");
    // What goes on is the same run: other settings are refused, where a fresh start would take them.
    train.set.push("train.rate=1e-4".to_owned());
    assert!(train.run(&Progress::new()).is_err());
}

#[test]
fn nobody_to_answer_and_nothing_to_answer_are_told_apart() {
    let mut predict = Predict::with_run("gone", "test", "p.jsonl");
    predict.model.split = None;
    let refused = predict.run(&Progress::new()).unwrap_err();
    assert_eq!(refused.advice_in(Dialect::Python).unwrap(), "pass `split=…` or `truth=…`");
    predict.run_folder = None;
    let refused = predict.run(&Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("nobody"), "{refused}");
}

#[test]
fn splits_are_written_whole_with_their_manifest() {
    let (_guard, folder) = folder();
    small_charades(&folder);
    let root = folder.join("charades");
    let mut dataset = NamedDataset::new("charades-sta", &root);
    dataset.folder.durations = Some(folder.join("lengths.json"));
    let make = MakeSplits::new(SplitProtocol::Centre, dataset, folder.join("splits"));
    let made = make.run(&Progress::new()).unwrap();
    let names: Vec<&str> = made.manifest.outcome.splits.iter().map(|split| split.name.as_str()).collect();
    assert_eq!(names, ["train", "val", "test-iid", "test-ood"]);
    assert_eq!(made.manifest.settings.inputs.len(), 2, "the manifest says what was read");
    assert!(folder.join("splits/test-ood.jsonl").is_file() && folder.join("splits/manifest.json").is_file());
    let value = serde_json::to_value(&made).unwrap();
    assert_eq!((&value["protocol"], &value["settings"]["dataset"]), (&json!("centre"), &json!("charades-sta")));
    // Nothing is replaced unasked, and that is noticed before anything is read.
    std::fs::remove_dir_all(&root).unwrap();
    let refused = make.run(&Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("exists already"), "{refused}");
}

#[test]
fn one_share_of_several_may_not_start_a_store_anew() {
    let mut extract = Extract::new(["gone.mp4"], "world-motion", "store");
    extract.shard = "1/2".parse().unwrap();
    extract.force = true;
    assert!(matches!(extract.run(&Progress::new()).unwrap_err(), Error::Setting { setting: "force", .. }));
    extract.force = false;
    let refused = extract.run(&Progress::new()).unwrap_err();
    assert!(refused.to_string().contains("gone.mp4"), "{refused}");
}

#[test]
fn queries_are_pooled_rewritten_and_audited() {
    let (_guard, folder) = folder();
    world(&folder);
    let train = folder.join("world/splits/train.jsonl");
    let rewrite = RewriteQueries::new(QueryText::MaskVerb, Queries::new(&train), folder.join("masked.jsonl"));
    let report = rewrite.run(&Progress::new()).unwrap();
    assert!(report.changed > 0 && report.changed + report.without_verb == report.queries, "{report:?}");
    assert!(std::fs::read_to_string(folder.join("masked.jsonl")).unwrap().contains("[MASK]"));
    let original = RewriteQueries { mode: QueryText::Original, ..rewrite };
    let refused = RewriteQueries { out: folder.join("other.jsonl"), ..original }.run(&Progress::new()).unwrap_err();
    assert!(matches!(refused, Error::Setting { setting: "mode", .. }), "{refused}");

    let mut pools = MakePools::new(Queries::new(&train), folder.join("pools.jsonl"));
    pools.similarity.provider = Some("word-by-word".to_owned());
    assert!(matches!(pools.run(&Progress::new()).unwrap_err(), Error::Setting { setting: "similarity", .. }));
    pools.similarity.provider = Some("tfidf".to_owned());
    (pools.videos, pools.positives) = (4, 2);
    let made = pools.run(&Progress::new()).unwrap();
    assert_eq!(made.settings.videos, 4);
    assert!(made.report.kept > 0 && folder.join("pools.jsonl").is_file(), "{:?}", made.report);
    let value = serde_json::to_value(&made).unwrap();
    let fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["settings", "report", "out"]);

    let audited = AuditSplits::new(folder.join("world/splits")).run(&Progress::new()).unwrap();
    assert_eq!(audited.report.splits.len(), 4);
    assert!(audited.drawn.is_empty());
    let sound = AuditWorld::new(folder.join("world")).run(&Progress::new()).unwrap();
    assert!(sound.is_sound());
    let value = serde_json::to_value(&sound).unwrap();
    assert!(value["gaps"]["cd"].is_array() && value["constructed"]["pools"].is_object(), "{value}");
}
