//! Exit codes of what is made of other people's work: checkpoints that do not fit, results that cannot be made again.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_features::tensor_file::{NamedTensor, write_safetensors};
use cuemark_formats::Overwrite;
use cuemark_world::{WorldOptions, make};

fn cuemark(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuemark")).args(arguments).env("COLUMNS", "110").output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_checkpoint_that_does_not_fit_ends_with_its_table_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    make(&WorldOptions { videos: 8, length: 10.0, ..WorldOptions::default() }, &folder.join("world"), &Progress::new())
        .unwrap();
    std::fs::write(folder.join("words.txt"), "the 0.5 0.25\na 0.1 0.2\n").unwrap();
    // One parameter of 2D-TAN, alone in a file.
    let only = NamedTensor { shape: vec![4], values: vec![0.0; 4] };
    let only = BTreeMap::from([("fusion_layer.vis_conv.bias".to_owned(), only)]);
    write_safetensors(&folder.join("theirs.safetensors"), Overwrite::Never, &only).unwrap();
    let path = |name: &str| folder.join(name).into_string();
    let (code, out, err) = said(&cuemark(&[
        "predict",
        "--model",
        "2d-tan",
        "--checkpoint",
        &path("theirs.safetensors"),
        "--truth",
        &path("world/splits/val.jsonl"),
        "--features",
        &path("world/features-motion"),
        "--set",
        &format!("data.words={}", path("words.txt")),
        "--out",
        &path("p.jsonl"),
    ]));
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("theirs.safetensors does not fit") && err.contains("missing in the file"), "{err}");
    assert!(err.contains("NOT a checkpoint of 2d-tan") && err.contains("--allow-missing PREFIX"), "{err}");
    assert!(!folder.join("p.jsonl").exists());
    // A method without its file, or the other way round, is a fault of the command line.
    let (code, ..) = said(&cuemark(&["predict", "--model", "2d-tan", "--out", "p.jsonl"]));
    assert_eq!(code, Some(2));
}

#[test]
fn a_result_that_cannot_be_made_again_says_what_to_fetch_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runs");
    let nowhere = nowhere.to_str().unwrap();
    let words = ["reproduce", "2d-tan", "tacos", "--runs", runs, "--root", nowhere, "--out", nowhere];
    let (code, out, err) = said(&cuemark(&words));
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("MISSING") && out.contains("annotations of tacos: from "), "{out}");
    assert!(out.contains("clip features: from microsoft/VideoX (2D-TAN) (tall_c3d_features.hdf5"), "{out}");
    assert!(out.contains("nothing was trained: "), "{out}");
}
