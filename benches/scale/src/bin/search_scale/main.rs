//! How the embedded engine grows, on moments that are made on the spot (`moments.rs` says how).
//!
//! - `search_scale make FOLDER MOMENTS`: writes the log and derives the graph; seconds, bytes and the most memory that took.
//! - `search_scale ask FOLDER QUESTIONS`: opens it; recall@10 against every moment looked at, queries a second on all threads,
//!   milliseconds of one on one thread, memory, as effort grows.
//! - `search_scale write FOLDER OUT`: the same moments and questions as plain 32-bit numbers, for a peer.
//!
//! Each prints one line of JSON. Two processes, so that the memory of the one is not counted as the other's.
#![allow(clippy::print_stdout)] // a program of its own

mod moments;

use std::time::Instant;

use anyhow::Context as _;
use camino::Utf8Path;
use cuemark_core::{Progress, VideoId};
use cuemark_formats::Overwrite;
use cuemark_scale::{memory, write_for_a_peer};
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine as _, Filter, Nearest, Settling};
use moments::{PER_VIDEO, WIDTH, World};
use rayon::prelude::*;
use serde_json::{Value, json};

/// Videos that are written together.
const TOGETHER: usize = 1024;
/// Moments wanted.
const WANTED: usize = 10;
const EFFORTS: [usize; 10] = [12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// Questions that are written for a peer.
const WRITTEN: usize = 1000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let told = match words.as_slice() {
        ["make", folder, count] => make(Utf8Path::new(folder), count.parse()?)?,
        ["ask", folder, questions] => ask(Utf8Path::new(folder), questions.parse()?)?,
        ["write", folder, out] => write(Utf8Path::new(folder), Utf8Path::new(out))?,
        _ => anyhow::bail!("search_scale make FOLDER MOMENTS | ask FOLDER QUESTIONS | write FOLDER OUT"),
    };
    println!("{told}");
    Ok(())
}

fn make(folder: &Utf8Path, count: usize) -> anyhow::Result<Value> {
    let world = World::new();
    let engine = Embedded::create(folder, WIDTH, Overwrite::Force)?;
    let began = Instant::now();
    let videos: Vec<usize> = (0..count.div_ceil(PER_VIDEO)).collect();
    for numbers in videos.chunks(TOGETHER) {
        let mut videos: Vec<_> = numbers.par_iter().map(|number| world.video(*number)).collect();
        // The last one may have more than were asked for.
        if let (Some(last), Some((_, moments))) = (numbers.last(), videos.last_mut()) {
            moments.truncate(count.saturating_sub(last * PER_VIDEO));
        }
        engine.put_all(&videos)?;
    }
    let written = began.elapsed().as_secs_f64();
    let before = memory();
    let began = Instant::now();
    engine.settle(Settling::Anew, &Progress::new())?;
    let built = began.elapsed().as_secs_f64();
    let status = engine.status()?;
    Ok(json!({
        "moments": status.moments, "width": WIDTH, "threads": rayon::current_num_threads(),
        "write_s": written, "build_s": built, "graph_bytes": engine.graph_bytes(), "disk_bytes": status.bytes,
        "memory_before_build": before, "memory": memory(),
    }))
}

fn ask(folder: &Utf8Path, questions: usize) -> anyhow::Result<Value> {
    let began = Instant::now();
    let engine = Embedded::open(folder)?;
    let opened = began.elapsed().as_secs_f64();
    let began = Instant::now();
    drop(Embedded::open(folder)?);
    let opened_again = began.elapsed().as_secs_f64();
    let world = World::new();
    let questions: Vec<Embedding> = (0..questions).filter_map(|number| world.question(number)).collect();
    let began = Instant::now();
    let least = tenth_best(&engine, &questions)?;
    let exact = began.elapsed().as_secs_f64();
    let mut points = Vec::new();
    for expansion in EFFORTS {
        let near = |question: &Embedding| {
            let effort = Effort::Expansion(expansion);
            engine.nearest(question, &Nearest { count: WANTED, filter: Filter::default(), effort })
        };
        let (mut found, mut times) = (0, Vec::with_capacity(questions.len()));
        for (question, least) in questions.iter().zip(&least) {
            let began = Instant::now();
            let hits = near(question)?;
            times.push(1e3 * began.elapsed().as_secs_f64());
            // A tie with the tenth is as good as the tenth.
            found += hits.iter().filter(|hit| hit.score >= *least).count().min(WANTED);
        }
        // Of the processor, which others on the machine do not take from it.
        let before = busy_ns();
        questions.iter().try_for_each(|question| near(question).map(drop))?;
        let busy_us = busy_ns().zip(before).map(|(now, before)| 1e-3 * (now - before) / questions.len().max(1) as f64);
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((share * times.len() as f64) as usize);
        // As many rounds as make some seconds' worth of questions.
        let rounds = (20_000 / questions.len().max(1)).max(1);
        let began = Instant::now();
        for _ in 0..rounds {
            questions.par_iter().try_for_each(|question| near(question).map(drop))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        points.push(json!({
            "expansion": expansion,
            "recall": found as f64 / (WANTED * questions.len()).max(1) as f64,
            "qps": (rounds * questions.len()) as f64 / seconds,
            "median_ms": at(0.5), "p99_ms": at(0.99), "worst_ms": times.last(), "processor_us": busy_us,
        }));
    }
    let status = engine.status()?;
    Ok(json!({
        "moments": status.moments, "in_graph": status.in_graph, "width": WIDTH, "questions": questions.len(),
        "threads": rayon::current_num_threads(), "open_s": opened, "open_again_s": opened_again, "exact_s": exact,
        "graph_bytes": engine.graph_bytes(), "disk_bytes": status.bytes, "memory": memory(), "points": points,
    }))
}

/// What the tenth best moment scores for each question, every moment looked at.
fn tenth_best(engine: &Embedded, questions: &[Embedding]) -> anyhow::Result<Vec<f32>> {
    let videos: Vec<VideoId> = engine.videos()?.into_iter().map(|entry| entry.id).collect();
    let of_videos = |videos: &[VideoId]| -> cuemark_search::Result<Vec<Vec<f32>>> {
        let mut best: Vec<Vec<f32>> = vec![Vec::new(); questions.len()];
        for video in videos {
            for (question, best) in questions.iter().zip(&mut best) {
                best.extend(engine.scores(video, question)?.into_iter().flatten().map(|(_, score)| score));
                keep_best(best);
            }
        }
        Ok(best)
    };
    let parts: Vec<Vec<Vec<f32>>> = videos.par_chunks(64).map(of_videos).collect::<cuemark_search::Result<_>>()?;
    let mut best: Vec<Vec<f32>> = vec![Vec::new(); questions.len()];
    for part in parts {
        for (best, of_part) in best.iter_mut().zip(part) {
            best.extend(of_part);
            keep_best(best);
        }
    }
    best.iter().map(|best| best.last().copied().context("there are no moments")).collect()
}

fn keep_best(scores: &mut Vec<f32>) {
    if scores.len() > WANTED {
        scores.select_nth_unstable_by(WANTED - 1, |a, b| b.total_cmp(a));
        scores.truncate(WANTED);
    }
    scores.sort_by(|a, b| b.total_cmp(a));
}

fn write(folder: &Utf8Path, out: &Utf8Path) -> anyhow::Result<Value> {
    let (engine, world) = (Embedded::open(folder)?, World::new());
    let questions: Vec<Embedding> = (0..WRITTEN).filter_map(|number| world.question(number)).collect();
    write_for_a_peer(&engine, &questions, out)?;
    Ok(json!({ "moments": engine.status()?.moments, "questions": questions.len() }))
}

/// Nanoseconds that this thread has had a processor for, where the system says.
fn busy_ns() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
