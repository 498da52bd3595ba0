//! How fast the embedded engine is: `search_speed INDEX RUN QUERIES OUT`.
//!
//! Takes the moments of an index and the sentences of a truth file, writes both as plain 32-bit numbers for the peer
//! (`OUT/moments.f32`, `OUT/queries.f32`), derives the graph anew, and prints one line of JSON: seconds to build, bytes, and
//! for growing effort the recall@10 against exact search and the queries a second on all threads.
#![allow(clippy::print_stdout)] // a program of its own

use std::io::{BufWriter, Write as _};
use std::time::Instant;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine as _, Filter, Hit, Nearest, Settling, encoder};
use rayon::prelude::*;
use serde_json::{Value, json};

/// Queries that are asked.
const QUERIES: usize = 1000;
/// Times that all of them are asked for one figure.
const ROUNDS: usize = 3;
const EFFORTS: [usize; 8] = [24, 32, 48, 64, 96, 128, 192, 256];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<Utf8PathBuf> = std::env::args().skip(1).map(Utf8PathBuf::from).collect();
    let [index, run, truth, out] = arguments.as_slice() else { anyhow::bail!("search_speed INDEX RUN QUERIES OUT") };
    let engine = Embedded::open(index)?;
    let queries = sentences(run, truth)?;
    write(&engine, &queries, out)?;
    let began = Instant::now();
    engine.settle(Settling::Anew, &mut |_, _| {})?;
    let build = began.elapsed().as_secs_f64();
    drop(engine);
    let engine = Embedded::open(index)?;
    let before = resident();
    let ask =
        |query: &Embedding, effort| engine.nearest(query, &Nearest { count: 10, filter: Filter::default(), effort });
    let exact: Vec<Vec<Hit>> =
        queries.iter().map(|query| ask(query, Effort::Exact)).collect::<cuemark_search::Result<_>>()?;
    let after_exact = resident();
    let mut points = Vec::new();
    for expansion in EFFORTS {
        let mut found = 0;
        for (query, exact) in queries.iter().zip(&exact) {
            let near = ask(query, Effort::Expansion(expansion))?;
            // A tie with the tenth is as good as the tenth.
            let least = exact.last().map_or(0.0, |hit| hit.score);
            found += near.iter().filter(|hit| hit.score >= least).count().min(exact.len());
        }
        let began = Instant::now();
        for _ in 0..ROUNDS {
            queries.par_iter().try_for_each(|query| ask(query, Effort::Expansion(expansion)).map(drop))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let wanted: usize = exact.iter().map(Vec::len).sum();
        points.push(json!({
            "expansion": expansion,
            "recall": found as f64 / wanted.max(1) as f64,
            "qps": (ROUNDS * queries.len()) as f64 / seconds,
        }));
    }
    let status = engine.status()?;
    let told = json!({
        "moments": status.moments,
        "width": engine.width(),
        "build_s": build,
        "graph_bytes": engine.graph_bytes(),
        "resident_before": before,
        "resident_after_exact": after_exact,
        "points": points,
        "threads": rayon::current_num_threads(),
    });
    println!("{told}");
    Ok(())
}

/// Embeddings of the first different sentences of a truth file of ours.
fn sentences(run: &Utf8Path, truth: &Utf8Path) -> anyhow::Result<Vec<Embedding>> {
    let encoder = encoder::open(run.as_str(), None, &cuemark_tensor::device("cpu")?)?;
    let text = std::fs::read_to_string(truth).with_context(|| truth.to_string())?;
    let mut known = std::collections::BTreeSet::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line)?;
        if let Some(sentence) = value["query"].as_str().filter(|_| known.len() < QUERIES) {
            known.insert(sentence.to_owned());
        }
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Ok(encoder.sentences(&known)?)
}

fn write(engine: &Embedded, queries: &[Embedding], out: &Utf8Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out)?;
    let put = |file: &mut BufWriter<std::fs::File>, embedding: &Embedding| {
        embedding.numbers().iter().try_for_each(|x| file.write_all(&x.to_le_bytes()))
    };
    let mut file = BufWriter::new(std::fs::File::create(out.join("moments.f32"))?);
    for entry in engine.videos()? {
        for moment in engine.moments(&entry.id)?.unwrap_or_default() {
            put(&mut file, &moment.embedding)?;
        }
    }
    file.flush()?;
    let mut file = BufWriter::new(std::fs::File::create(out.join("queries.f32"))?);
    queries.iter().try_for_each(|query| put(&mut file, query))?;
    Ok(file.flush()?)
}

/// Bytes in memory by kind, as the system counts them.
fn resident() -> Value {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map(|kilobytes| 1024 * kilobytes)
    };
    json!({ "all": kilobytes("VmRSS:"), "own": kilobytes("RssAnon:"), "mapped": kilobytes("RssFile:") })
}
