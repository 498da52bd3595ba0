//! The server's times, asked by another process at a steady rate.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Table, lines, number};
use crate::client::Served;
use crate::python;

/// Requests a second.
const RATE: usize = 200;
/// Seconds of them.
const SECONDS: usize = 20;
/// Connections over which they come.
const CONNECTIONS: usize = 16;
/// Different sentences.
const SENTENCES: usize = 500;
/// Milliseconds within which 99 of 100 answers are wanted.
const WANTED_MS: f64 = 20.0;

/// Times of `program` with every sentence new to the server, then with all of them known.
pub(crate) fn measure(program: &Path, python: &Path, index: &Path, truth: &Path, folder: &Path) -> Result<Value> {
    let sentences = folder.join("sentences.txt");
    std::fs::write(&sentences, different(truth)?.join("\n"))?;
    let server = Served::start(Command::new(program).arg("serve").arg(index).args(["--listen", "127.0.0.1:0"]))?;
    let load = |rate: usize| -> Result<Value> {
        let mut command = Command::new(python);
        command.arg(python::peer("http_load.py")).args([&server.address, &rate.to_string(), &SECONDS.to_string()]);
        lines(command.arg(&sentences).arg(CONNECTIONS.to_string()))?.pop().context("no figures of the load")
    };
    let new = load(0)?;
    let known = load(RATE)?;
    Ok(json!({ "new": new, "known": known }))
}

/// The first different sentences of a truth file of ours.
fn different(truth: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(truth).with_context(|| truth.display().to_string())?;
    let mut known = BTreeSet::new();
    for line in text.lines() {
        if known.len() == SENTENCES {
            break;
        }
        let value: Value = serde_json::from_str(line)?;
        known.extend(value["query"].as_str().map(str::to_owned));
    }
    Ok(known.into_iter().collect())
}

pub(super) fn table(served: &Value) -> Result<Table> {
    let row = |what: &str, told: &Value, wanted: String| -> Result<Vec<String>> {
        Ok(vec![
            what.to_owned(),
            told["requests"].to_string(),
            told["failed"].to_string(),
            format!("{:.1} ms", number(&told["median_ms"])?),
            format!("{:.1} ms", number(&told["p99_ms"])?),
            format!("{:.1} ms", number(&told["worst_ms"])?),
            wanted,
        ])
    };
    let rows = vec![
        row(&format!("{RATE} a second, sentences known"), &served["known"], format!("p99 <= {WANTED_MS} ms"))?,
        row("one by one, sentences new: with the text encoder", &served["new"], "reported".to_owned())?,
    ];
    let header = vec!["HTTP search", "requests", "failed", "median", "p99", "worst", "goal"];
    Ok(Table { title: "Over HTTP, load from another process".to_owned(), header, rows })
}
