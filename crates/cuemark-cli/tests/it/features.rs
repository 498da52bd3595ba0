//! `cuemark features` as a person meets it.

use std::process::Output;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_testkit::{fixture, program, succeed};
use serde_json::Value;

fn cuemark(arguments: &[&str]) -> Output {
    program(env!("CARGO_BIN_EXE_cuemark")).args(arguments).output().unwrap()
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

/// Exit code, standard output and standard error, with paths of this machine taken out.
fn told(arguments: &[&str], folder: &Utf8Path) -> String {
    cuemark_testkit::told(&cuemark(arguments)).replace(folder.as_str(), "DIR")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(program(env!("CARGO_BIN_EXE_cuemark")).args(arguments))).unwrap()
}

fn published(layout: &str) -> String {
    fixture("features").join(layout).into_string()
}

#[test]
fn help_tells_how_to_convert() {
    insta::assert_snapshot!(told(&["features", "convert", "-h"], Utf8Path::new("/nowhere")));
}

#[test]
fn published_features_are_described() {
    insta::assert_snapshot!(told(&["features", "info", &published("npz")], Utf8Path::new("/nowhere")));
}

#[test]
fn a_clip_length_is_asked_for_and_never_assumed() {
    let (_guard, dir) = folder();
    let out = dir.join("store");
    insta::assert_snapshot!(told(&["features", "convert", &published("npy"), "--out", out.as_str()], &dir));
    assert!(!out.exists());
}

#[test]
fn features_are_converted_described_and_compared() {
    let (_guard, dir) = folder();
    let (npy, store) = (published("npy"), dir.join("store"));
    let convert = ["features", "convert", &npy, "--out", store.as_str(), "--clip-length", "1.5", "--extractor", "i3d"];
    let steps = [
        told(&convert, &dir),
        told(&[convert.as_slice(), &["--dtype", "f16"]].concat(), &dir),
        told(&[convert.as_slice(), &["--normalise", "l2"]].concat(), &dir),
        told(&[convert.as_slice(), &["--normalise", "l2", "--force"]].concat(), &dir),
        told(&["features", "info", store.as_str()], &dir),
        told(&["features", "compare", &npy, store.as_str()], &dir),
    ];
    insta::assert_snapshot!(steps.join("\n=====\n"));
}

#[test]
fn rows_span_the_durations_of_a_truth_file() {
    let (_guard, dir) = folder();
    let (truth, store, csv) = (dir.join("truth.jsonl"), dir.join("store"), published("csv"));
    let line = |video: &str, duration: f64| {
        format!(
            "{{\"qid\":\"{video}\",\"query\":\"q\",\"video\":\"{video}\",\"duration\":{duration},\"spans\":[[0,1]]}}\n"
        )
    };
    std::fs::write(&truth, line("3MSZA", 8.0) + &line("a b.mp4", 9.0)).unwrap();
    let convert =
        ["features", "convert", &csv, "--out", store.as_str(), "--rows-span-duration", "--truth", truth.as_str()];
    insta::assert_snapshot!(told(&convert, &dir));
    std::fs::write(&truth, line("3MSZA", 8.0) + &line("a b.mp4", 9.0) + &line("v_long", 10.0)).unwrap();
    assert_eq!(json(&[convert.as_slice(), &["--json"]].concat())["converted"]["rows"], 10);
    let info = json(&["features", "info", store.as_str(), "--json"]);
    assert_eq!(info["streams"][0]["rows_span_duration"], true);
    assert_eq!(info["streams"][0]["widths"][0]["width"], 4);
}

#[test]
fn streams_of_two_places_become_one_store() {
    let (_guard, dir) = folder();
    let (store, visual, subtitle) =
        (dir.join("store"), format!("visual={}", published("npy")), format!("subtitle={}", published("csv")));
    let convert = ["features", "convert", &visual, &subtitle, "--out", store.as_str(), "--clip-length", "1", "--json"];
    assert_eq!(json(&convert)["converted"]["streams"], serde_json::json!(["subtitle", "visual"]));
    let info = json(&["features", "info", store.as_str(), "--json"]);
    assert_eq!(info["streams"].as_array().unwrap().len(), 2);
}

#[test]
fn a_projection_is_kept_beside_the_shards_and_used_again() {
    let (_guard, dir) = folder();
    let (store, other, npy) = (dir.join("store"), dir.join("other"), published("npy"));
    let convert = ["features", "convert", &npy, "--out", store.as_str(), "--clip-length", "1", "--pca", "2", "--json"];
    let told = json(&convert);
    assert_eq!((&told["pca"]["components"], &told["pca"]["rows"]), (&2.into(), &10.into()));
    // Rows are 100 v + 10 r + c: all of their variance lies along one direction.
    assert!(told["pca"]["kept"].as_f64().unwrap() > 0.999_999);
    assert_eq!(json(&convert)["converted"]["resumed"], 3);
    let pca = store.join("visual.pca");
    json(&[
        "features",
        "convert",
        &npy,
        "--out",
        other.as_str(),
        "--clip-length",
        "1",
        "--pca-file",
        pca.as_str(),
        "--json",
    ]);
    let compared = json(&["features", "compare", store.as_str(), other.as_str(), "--json"]);
    assert_eq!((&compared["streams"][0]["min"], &compared["streams"][0]["clips"]), (&1.0.into(), &10.into()));
}

#[test]
fn what_is_wrong_is_named_with_an_exit_code() {
    let (_guard, dir) = folder();
    std::fs::write(dir.join("a.csv"), "1,2\n0,0\n").unwrap();
    std::fs::write(dir.join("b.csv"), "1,nan\n").unwrap();
    std::fs::write(dir.join("c.csv"), "1,2,3\n").unwrap();
    std::fs::write(dir.join("d.csv"), "1,x\n").unwrap();
    insta::assert_snapshot!(told(&["features", "info", dir.as_str()], &dir));
}

#[test]
fn hdf5_is_described() {
    let info = json(&["features", "info", &published("flat.h5"), "--json"]);
    assert_eq!((&info["streams"][0]["layout"], &info["streams"][0]["rows"]), (&"hdf5".into(), &10.into()));
}

#[test]
fn extracting_without_weights_says_how_to_get_them() {
    let (_guard, dir) = folder();
    let (film, store) = (dir.join("film.mp4"), dir.join("store"));
    std::fs::write(&film, "not yet looked at").unwrap();
    let extract = |encoder: &str, more: &[&str]| {
        let start = ["features", "extract", film.as_str(), "--encoder", encoder, "--out", store.as_str()];
        told(&[start.as_slice(), more].concat(), &dir)
    };
    let pull = extract("i3d", &[]);
    assert!(pull.starts_with("exit 1"), "{pull}");
    assert!(pull.contains("error: the weights `i3d` are not on this machine"), "{pull}");
    assert!(pull.contains("hint: run `cuemark weights pull i3d`"), "{pull}");
    let own = extract("resnet152", &[]);
    assert!(own.contains("hint: name the file with `--weights FILE`"), "{own}");
    let unknown = extract("i4d", &[]);
    assert!(unknown.contains("error: no encoder is called `i4d`\nhint: there are i3d, "), "{unknown}");
    let share = extract("i3d", &["--shard", "5/4"]);
    assert!(share.starts_with("exit 2") && share.contains("`5/4` is not a share"), "{share}");
    let gone = told(&["features", "extract", "/nowhere/film.mp4", "--encoder", "i3d", "--out", store.as_str()], &dir);
    assert!(gone.starts_with("exit 1") && gone.contains("/nowhere/film.mp4"), "{gone}");
    assert!(!store.exists());
}

/// D31: LMDB is C code that trusts its file. It is in no usual build, the documentation says why, and where it is built in, a
/// damaged database ends the one process that reads it, at once and with no answer made up of what lies outside of the file.
#[test]
fn lmdb_is_left_out_unless_asked_for_and_a_damaged_database_ends_its_own_process_only() {
    let manifest = include_str!("../../Cargo.toml");
    let usual = manifest.lines().find(|line| line.starts_with("default =")).unwrap_or("");
    assert!(!usual.contains("lmdb"), "{usual}");
    let said = include_str!("../../../../docs/features.md");
    assert!(said.contains("`lmdb` stands on a C library that trusts the files it reads"));
    if cfg!(not(feature = "lmdb")) {
        return;
    }
    let (_guard, folder) = folder();
    let whole = std::fs::read(fixture("features/lmdb/data.mdb")).unwrap();
    let mut rng = cuemark_core::Rng::new(31);
    let mut ended = [0; 3];
    for round in 0..40 {
        let mut damaged = whole.clone();
        for _ in 0..1 + round % 4 {
            let place = rng.below(damaged.len());
            damaged[place] ^= 1 << rng.below(8);
        }
        std::fs::write(folder.join("data.mdb"), damaged).unwrap();
        let began = std::time::Instant::now();
        let output = cuemark(&["features", "info", folder.as_str(), "--clip-length", "2", "--json"]);
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "round {round}");
        let how = match output.status.code() {
            Some(0) => 0,
            Some(_) => 1,
            None => 2,
        };
        // An answer about damaged rows is an answer with exit code 1; whoever was ended by a signal has said nothing.
        assert!(how < 2 || output.stdout.is_empty(), "round {round}: an answer and a signal");
        ended[how] += 1;
    }
    assert!(ended[0] < 40, "no damage was noticed: {ended:?}");
}
