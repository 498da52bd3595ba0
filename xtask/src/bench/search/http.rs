//! The server's times, asked by another process at a steady rate.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Table, lines, number};
use crate::process::target_folder;
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

/// A server that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Times with every sentence new to the server, then with all of them known.
pub(super) fn measure(python: &Path, index: &Path, truth: &Path, folder: &Path) -> Result<Value> {
    let sentences = folder.join("sentences.txt");
    std::fs::write(&sentences, different(truth)?.join("\n"))?;
    let mut child = Command::new(target_folder()?.join("release/cuemark"))
        .arg("serve")
        .arg(index)
        .args(["--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .context("cuemark serve")?;
    let told = BufReader::new(child.stderr.take().context("the server says nothing")?);
    let server = Server(child);
    let said = told.lines().map_while(Result::ok).find_map(|line| Some(line.split_once("http://")?.1.to_owned()));
    let address = said.context("the server does not say where it listens")?;
    let load = |rate: usize| -> Result<Value> {
        let mut command = Command::new(python);
        command.arg(python::peer("http_load.py")).args([&address, &rate.to_string(), &SECONDS.to_string()]);
        lines(command.arg(&sentences).arg(CONNECTIONS.to_string()))?.pop().context("no figures of the load")
    };
    let new = load(0)?;
    let known = load(RATE)?;
    drop(server);
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
