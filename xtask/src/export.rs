//! `verify export`: a 2D-TAN that we trained, exported and opened in PyTorch, gives our answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::{cargo, scratch_folder, target_folder, watch, workspace};
use crate::python;
use crate::test::FEATURES;

/// Films of the world, and the split that is answered.
const VIDEOS: &str = "60";
const SPLIT: &str = "test-iid";
/// Clips before and on the map, as the run file has them.
const CLIPS: [&str; 2] = ["32", "16"];
/// Numbers of a word's vector.
const WORD: usize = 12;

/// Makes a small world, trains on it for two epochs, exports, answers, and has PyTorch compute the answers anew.
pub(crate) fn run(_: &[&str]) -> Result<bool> {
    // Built as the tests build it, so that nothing is compiled twice.
    if !watch(&mut cargo(&["build", "--workspace", "--bin", "cuemark", FEATURES]))?.ok {
        bail!("cuemark does not build");
    }
    let folder = scratch_folder("verify-export")?;
    std::fs::remove_dir_all(&folder)?;
    std::fs::create_dir_all(&folder)?;
    let world = folder.join("world");
    let (words, run, export) = (folder.join("words.txt"), folder.join("run"), folder.join("export.pt"));
    let answers = folder.join("answers.jsonl");
    cuemark(&["world", "make", "--videos", VIDEOS, "--out", text(&world)?])?;
    std::fs::write(&words, vectors(&world.join("splits"))?)?;
    let file = workspace().join("runs/2d-tan/world.toml");
    let set = [
        format!("data.root={}", text(&world)?),
        format!("data.words={}", text(&words)?),
        "train.epochs=2".to_owned(),
        "model.hidden=32".to_owned(),
    ];
    let mut train = vec!["train", text(&file)?, "--out", text(&run)?];
    set.iter().for_each(|set| train.extend(["--set", set]));
    cuemark(&train)?;
    cuemark(&["models", "export", text(&run)?, "--to", "pytorch", "--out", text(&export)?])?;
    cuemark(&["predict", text(&run)?, "--split", SPLIT, "--out", text(&answers)?])?;
    let mut reader = Command::new(python::interpreter(&[python::NUMPY, python::TORCH])?);
    reader.arg(python::peer("tan2d_reader.py")).arg(export).arg(world.join("features-motion")).arg("visual").arg(words);
    reader.arg(world.join("splits").join(format!("{SPLIT}.jsonl"))).arg(answers).args(CLIPS);
    Ok(watch(&mut reader)?.ok)
}

fn cuemark(words: &[&str]) -> Result<()> {
    let program = target_folder()?.join("debug/cuemark");
    println!("$ cuemark {}", words.join(" "));
    if !watch(Command::new(program).args(words))?.ok {
        bail!("`cuemark {}` did not end well", words[0]);
    }
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// A GloVe file of our own making: a vector, drawn by a rule, for every word of every query of the splits.
fn vectors(splits: &Path) -> Result<String> {
    let mut words = BTreeSet::new();
    for entry in std::fs::read_dir(splits).with_context(|| splits.display().to_string())? {
        let path: PathBuf = entry?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            for line in std::fs::read_to_string(&path)?.lines() {
                let asked: Value = serde_json::from_str(line).with_context(|| path.display().to_string())?;
                let query = asked["query"].as_str().context("a line without a query")?.to_lowercase();
                words.extend(query.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).filter(|w| !w.is_empty()));
            }
        }
    }
    let mut text = String::new();
    for (row, word) in words.iter().enumerate() {
        write!(text, "{word}")?;
        for column in 0..WORD {
            write!(text, " {:.4}", (((row * 31 + column * 17) % 101) as f64).sin())?;
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_every_query_has_a_vector() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.jsonl"), "{\"query\": \"The red ball, rolls.\"}\n").unwrap();
        let text = vectors(folder.path()).unwrap();
        let words: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(words, ["ball", "red", "rolls", "the"]);
        assert!(text.lines().all(|line| line.split(' ').count() == WORD + 1));
    }
}
