//! Makes large prediction files and reads them as one process would: time, rate and memory.
//!
//! ```console
//! $ cargo run --release -p cuemark-formats --example prediction_files -- make cuemark 1000000 /tmp/preds.jsonl
//! $ cargo run --release -p cuemark-formats --example prediction_files -- read /tmp/preds.jsonl
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::io::Write as _;
use std::time::Instant;

use cuemark_formats::{Overwrite, PredictionOptions, Source, WholeFile, read_predictions};

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["make", layout, queries, path] => make(layout, queries.parse().unwrap(), path),
        ["read", path] => read(path),
        _ => println!("usage: prediction_files make cuemark|qvhighlights|tvr QUERIES FILE | read FILE"),
    }
}

fn make(layout: &str, queries: usize, path: &str) {
    let mut out = WholeFile::create(path, Overwrite::Force).unwrap();
    match layout {
        "tvr" => out.write_all(synthetic::tvr(queries).as_bytes()).unwrap(),
        "qvhighlights" => out.write_all(synthetic::qvhighlights(queries).as_bytes()).unwrap(),
        _ => synthetic::cuemark(queries).for_each(|line| out.write_all(line.as_bytes()).unwrap()),
    }
    out.finish().unwrap();
}

fn read(path: &str) {
    let start = Instant::now();
    let (format, predictions) = read_predictions(&Source::new(path), &PredictionOptions::default()).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let lists = || predictions.tasks.iter().flat_map(|list| &list.queries);
    let rows: usize = lists().map(|list| list.ranked.len()).sum();
    let bytes = std::fs::metadata(path).unwrap().len() as f64;
    println!(
        "{format}: {} lists, {rows} predictions in {seconds:.3} s, {:.0} MB/s",
        lists().count(),
        bytes / seconds / 1e6
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak memory unknown"));
    std::process::exit(0); // millions of predictions are not worth taking apart again
}
