//! How fast the embedded engine is: `search_speed INDEX RUN QUERIES OUT SIZES`.
//!
//! Takes the moments of an index and the sentences of a truth file and writes both as plain 32-bit numbers for the peer
//! (`OUT/moments.f32`, `OUT/queries.f32`). For each of SIZES, numbers of moments separated by commas, it makes an index of
//! the first so many, derives the graph, and prints one line of JSON: seconds to build, bytes, and for growing effort the
//! recall@10 against exact search, the queries a second on all threads and the milliseconds of one on one thread.
#![allow(clippy::print_stdout)] // a program of its own

use std::time::Instant;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::Overwrite;
use cuemark_scale::{memory, write_for_a_peer};
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine as _, Filter, Hit, Nearest, Settling, encoder};
use rayon::prelude::*;
use serde_json::{Value, json};

/// Queries that are asked.
const QUERIES: usize = 1000;
/// Times that all of them are asked for one figure: some tenths of a second at least.
const ROUNDS: usize = 30;
/// Those of the peer, so that neither has a point just above the wanted recall that the other has not.
const EFFORTS: [usize; 17] = [10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<Utf8PathBuf> = std::env::args().skip(1).map(Utf8PathBuf::from).collect();
    let [index, run, truth, out, sizes] = arguments.as_slice() else {
        anyhow::bail!("search_speed INDEX RUN QUERIES OUT SIZES")
    };
    let engine = Embedded::open(index)?;
    let queries = sentences(run, truth)?;
    write_for_a_peer(&engine, &queries, out)?;
    for size in sizes.as_str().split(',') {
        println!("{}", measure(&engine, &queries, out, size.parse()?)?);
    }
    Ok(())
}

/// Figures for the first `size` moments of `source`, or all of them.
fn measure(source: &Embedded, queries: &[Embedding], out: &Utf8Path, size: usize) -> anyhow::Result<Value> {
    let folder = out.join(format!("engine-{size}"));
    let engine = Embedded::create(&folder, source.width(), Overwrite::Force)?;
    let mut left = size;
    for entry in source.videos()? {
        let mut moments = source.moments(&entry.id)?.unwrap_or_default();
        moments.truncate(left);
        left -= moments.len();
        engine.put(&entry, &moments)?;
        if left == 0 {
            break;
        }
    }
    let began = Instant::now();
    engine.settle(Settling::Anew, &cuemark_core::Progress::new())?;
    let build = began.elapsed().as_secs_f64();
    drop(engine);
    let engine = Embedded::open(&folder)?;
    let before = memory();
    let ask =
        |query: &Embedding, effort| engine.nearest(query, &Nearest { count: 10, filter: Filter::default(), effort });
    let began = Instant::now();
    let exact: Vec<Vec<Hit>> =
        queries.iter().map(|query| ask(query, Effort::Exact)).collect::<cuemark_search::Result<_>>()?;
    let exact_ms = 1e3 * began.elapsed().as_secs_f64() / queries.len().max(1) as f64;
    let mut points = Vec::new();
    for expansion in EFFORTS {
        let (mut found, mut times) = (0, Vec::with_capacity(queries.len()));
        for (query, exact) in queries.iter().zip(&exact) {
            let began = Instant::now();
            let near = ask(query, Effort::Expansion(expansion))?;
            times.push(1e3 * began.elapsed().as_secs_f64());
            // A tie with the tenth is as good as the tenth.
            let least = exact.last().map_or(0.0, |hit| hit.score);
            found += near.iter().filter(|hit| hit.score >= least).count().min(exact.len());
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((share * times.len() as f64) as usize);
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
            "median_ms": at(0.5),
            "p99_ms": at(0.99),
        }));
    }
    let status = engine.status()?;
    let told = json!({
        "moments": status.moments,
        "in_graph": status.in_graph,
        "width": engine.width(),
        "build_s": build,
        "graph_bytes": engine.graph_bytes(),
        "disk_bytes": status.bytes,
        "exact_ms": exact_ms,
        "memory_before": before,
        "memory_after": memory(),
        "points": points,
        "threads": rayon::current_num_threads(),
    });
    drop(engine);
    std::fs::remove_dir_all(&folder)?;
    Ok(told)
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
