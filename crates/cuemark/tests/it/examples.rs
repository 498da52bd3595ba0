//! The examples do what they say, on material of our own.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::NamedDataset;

/// Each example as a module: its `main` reads the command line, the function beside it does the work.
macro_rules! examples {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[allow(dead_code, unreachable_pub)] // `main` is for the command line
        #[path = $path]
        mod $name;)+

        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

examples! {
    extract_features = "../../examples/extract_features.rs",
    index_with_your_own_encoder = "../../examples/index_with_your_own_encoder.rs",
    make_a_split = "../../examples/make_a_split.rs",
    read_a_dataset = "../../examples/read_a_dataset.rs",
    score_a_file = "../../examples/score_a_file.rs",
    train_and_predict = "../../examples/train_and_predict.rs",
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

#[test]
fn every_example_is_run_here() {
    let files = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").read_dir_utf8().unwrap();
    let mut found: Vec<String> = files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned()).collect();
    found.sort();
    assert_eq!(found, NAMES);
}

#[test]
fn a_file_is_scored() {
    let (_guard, folder) = folder();
    let truth = r#"{"qid":"1","query":"a ball spins","video":"v","duration":20.0,"spans":[[2.0,6.0]]}"#;
    let answer = r#"{"qid":"1","predictions":[{"span":[2.0,5.0],"score":0.5}]}"#;
    std::fs::write(folder.join("t.jsonl"), truth).unwrap();
    std::fs::write(folder.join("p.jsonl"), answer).unwrap();
    score_a_file::score_a_file(folder.join("t.jsonl"), folder.join("p.jsonl")).unwrap();
    assert!(score_a_file::score_a_file(folder.join("t.jsonl"), folder.join("gone.jsonl")).is_err());
}

#[test]
fn a_dataset_is_read_and_parted() {
    let (_guard, folder) = folder();
    super::laboratory::small_charades(&folder);
    let root = folder.join("charades");
    read_a_dataset::read_a_dataset("charades-sta", &root).unwrap();
    let mut dataset = NamedDataset::new("charades-sta", root);
    dataset.folder.durations = Some(folder.join("lengths.json"));
    make_a_split::make_a_split(dataset, folder.join("splits")).unwrap();
    assert!(folder.join("splits/test-ood.jsonl").is_file());
}

#[test]
fn an_encoder_of_ones_own_is_indexed() {
    let (_guard, folder) = folder();
    index_with_your_own_encoder::index_with_your_own_encoder(folder.join("index")).unwrap();
}

#[test]
fn a_model_is_trained_and_answers() {
    let (_guard, folder) = folder();
    train_and_predict::train_and_predict(&folder).unwrap();
    assert!(folder.join("model.jsonl").is_file());
}

#[test]
fn films_become_features() {
    if cuemark_media::Ffmpeg::on_path().check().is_err() {
        println!("skipped: there is no ffmpeg");
        return;
    }
    let (_guard, folder) = folder();
    extract_features::features_of_a_world(&folder).unwrap();
    assert!(folder.join("store").is_dir());
}
