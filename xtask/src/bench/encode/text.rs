//! Sentences per second: MiniLM here and in sentence-transformers, two threads each, batches of 64 there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::super::spread::Spread;
use super::{Options, Table};
use crate::process::{cargo, scratch_folder, shared_folder, target_folder, time, watch};
use crate::python;

/// Threads of each side.
const THREADS: usize = 2;
/// Sentences in a batch of the peer's; its own default is 32.
const BATCH: usize = 64;
/// How many times faster than the peer it should be.
const WANTED: f64 = 1.0;
/// The least cosine of the two sides' vectors.
const LEAST_COSINE: f64 = 0.9999;

pub(super) fn run(options: &Options) -> Result<(Table, Value)> {
    let build = ["build", "--release", "--package", "cuemark-encoders", "--example", "encode_text"];
    if !watch(&mut cargo(&build))?.ok {
        bail!("our side does not build");
    }
    let ours = target_folder()?.join("release/examples/encode_text");
    let python = python::interpreter(&[python::TORCH, python::SENTENCE_TRANSFORMERS])?;
    let folder = scratch_folder("bench-encode")?;
    let cache = scratch_folder("cache")?;
    let sentences = folder.join("sentences.txt");
    std::fs::write(&sentences, queries(&shared_folder())?.join("\n"))?;
    let (mut mine, mut theirs) = (Spread::default(), Spread::default());
    let mut count = 0.0;
    for _ in 0..options.repeat {
        let mut command = Command::new(&ours);
        command.arg(&cache).arg(&sentences).arg("1").env("RAYON_NUM_THREADS", THREADS.to_string());
        let ours = line(&mut command, &folder)?;
        let mut command = Command::new(&python);
        command.arg(python::peer("encode_text.py")).arg(cache.join("weights/minilm")).arg(&sentences);
        command.args(["1".to_owned(), THREADS.to_string(), BATCH.to_string()]);
        let peer = line(command.env("OMP_NUM_THREADS", THREADS.to_string()).env("HF_HUB_OFFLINE", "1"), &folder)?;
        agree(&ours, &peer)?;
        push(&mut mine, &ours)?;
        push(&mut theirs, &peer)?;
        count = ours["sentences"].as_f64().context("no `sentences`")?;
    }
    let ratio = theirs.median() / mine.median();
    let row = vec![
        format!("{count} real queries"),
        theirs.to_string(),
        mine.to_string(),
        format!("{:.0}", count / theirs.median()),
        format!("{:.0}", count / mine.median()),
        format!("{ratio:.2}×"),
        format!("{WANTED}×"),
    ];
    let title = format!("MiniLM on {THREADS} threads: sentence-transformers (PyTorch, batches of {BATCH}) and ours");
    let header =
        vec!["what", "sentence-transformers", "cuemark", "sentences/s theirs", "sentences/s ours", "ratio", "wanted"];
    let figures = json!({
        "sentences": count, "sentence_transformers_s": theirs.to_json(), "ours_s": mine.to_json(), "ratio": ratio,
    });
    Ok((Table { title, header, rows: vec![row] }, figures))
}

/// The queries of Charades-STA's test split and of QVHighlights' validation split, in file order.
fn queries(shared: &Path) -> Result<Vec<String>> {
    let read = |path: PathBuf| std::fs::read_to_string(&path).with_context(|| path.display().to_string());
    let charades = read(shared.join("data/charades-sta/charades_sta_test.txt"))?;
    let highlights = read(shared.join("data/qvhighlights/highlight_val_release.jsonl"))?;
    let mut queries: Vec<String> =
        charades.lines().filter_map(|line| Some(line.split_once("##")?.1.to_owned())).collect();
    for line in highlights.lines() {
        let row: Value = serde_json::from_str(line)?;
        queries.push(row["query"].as_str().context("a row without `query`")?.to_owned());
    }
    Ok(queries)
}

fn line(command: &mut Command, folder: &Path) -> Result<Value> {
    serde_json::from_str(&time(command, folder)?.stdout).context("what it printed is not JSON")
}

fn push(spread: &mut Spread, line: &Value) -> Result<()> {
    let seconds = line["seconds"].as_array().with_context(|| format!("no `seconds` in {line}"))?;
    seconds.iter().filter_map(Value::as_f64).for_each(|seconds| spread.push(seconds));
    Ok(())
}

/// An error when the sides do not give the same vectors: a ratio of unequal work says nothing.
fn agree(ours: &Value, peer: &Value) -> Result<()> {
    let vectors = |line: &Value| -> Result<Vec<Vec<f64>>> {
        serde_json::from_value(line["first"].clone()).context("no vectors were printed")
    };
    let (ours, peer) = (vectors(ours)?, vectors(peer)?);
    for (a, b) in ours.iter().zip(&peer) {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        if cosine.is_nan() || cosine < LEAST_COSINE {
            bail!("the two sides disagree on a vector: their cosine is {cosine}");
        }
    }
    if ours.len() != peer.len() || ours.is_empty() {
        bail!("one side gives {} vectors, the other {}", ours.len(), peer.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_with_other_vectors_are_refused() {
        let of = |vectors: Value| json!({ "first": vectors });
        assert!(agree(&of(json!([[1.0, 0.0]])), &of(json!([[1.0, 0.001]]))).is_ok());
        assert!(agree(&of(json!([[1.0, 0.0]])), &of(json!([[1.0, 0.1]]))).is_err());
        assert!(agree(&of(json!([[1.0, 0.0]])), &of(json!([]))).is_err());
        assert!(agree(&of(json!([[0.0, 0.0]])), &of(json!([[0.0, 0.0]]))).is_err());
    }
}
