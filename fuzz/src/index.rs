//! The files of a search index: its log and its graph, each as an engine finds them on a disk in memory.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Line, Progress, Rng, Span, Track, Word};
use cuemark_formats::Overwrite;
use cuemark_search::engine::{Embedded, disk::Disk, salvage_on};
use cuemark_search::{
    AskedWord, Effort, Embedding, Engine, Filter, Forms, IndexedMoment, Nearest, Phrase, Result, Settling, VideoEntry,
    WordsAsked,
};
use serde_json::Value;

use crate::Turn;
use crate::memory::Memory;

const FOLDER: &str = "/index";
const LOG: &str = "/index/moments.log";
const RESCUED: &str = "/rescued";
/// Numbers per embedding of the index whose graph is replaced.
const WIDTH: usize = 8;

/// The bytes as a log: looked at, checked, written to, compacted, salvaged. What can be read before a write can be read
/// after it, and what was salvaged is sound.
pub fn log(path: &Utf8Path, turn: Turn) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let ways: [fn(&Memory) -> Result<()>; 4] = [look, write, compact, rescue];
    for way in turn.of(ways) {
        let disk = Memory::default();
        disk.put(LOG, &bytes);
        let _ = way(&disk);
    }
}

/// The bytes as the graph of a sound log, under a checksum that fits: whatever its links say, nothing is found that is not
/// there, and no search goes on for ever.
pub fn graph(path: &Utf8Path, turn: Turn) {
    thread_local! {
        /// Made once: deriving a graph takes longer than reading one.
        static STAGE: Option<(Memory, String, Value)> = indexed().ok();
    }
    let Ok(bytes) = std::fs::read(path) else { return };
    STAGE.with(|stage| {
        let Some((disk, name, about)) = stage else { return };
        let disk = disk.copy();
        let mut about = about.clone();
        about["bytes"] = bytes.len().into();
        about["crc"] = crc32fast::hash(&bytes).into();
        disk.put("/index/graph.json", about.to_string().as_bytes());
        disk.put(name, &bytes);
        let Ok(engine) = open(&disk, FOLDER) else { return };
        for effort in turn.of([Effort::Approximate, Effort::Expansion(3)]) {
            for axis in 0..3 {
                let Some(query) = axis_of(axis) else { continue };
                let ask = Nearest { count: 5, effort, ..Nearest::default() };
                let Ok(hits) = engine.nearest(&query, &ask) else { continue };
                assert!(hits.len() <= 5, "{} hits of five", hits.len());
                assert!(hits.iter().all(|hit| hit.video.as_str().starts_with("film")), "a video that was never put");
            }
        }
        let _ = engine.status();
    });
}

fn open(disk: &Memory, folder: &str) -> Result<Embedded> {
    Embedded::open_on(Arc::new(disk.clone()), Utf8Path::new(folder))
}

fn axis_of(axis: usize) -> Option<Embedding> {
    Embedding::unit((0..WIDTH).map(|n| if n == axis { 1.0 } else { 0.1 }).collect())
}

fn look(disk: &Memory) -> Result<()> {
    let engine = open(disk, FOLDER)?;
    let mut ones = vec![0.0; engine.width()];
    ones.iter_mut().for_each(|number| *number = 1.0);
    for entry in engine.videos()?.iter().take(20) {
        let moments = engine.moments(&entry.id)?;
        assert!(moments.is_some(), "`{}` is listed and is not there", entry.id);
        // Words that nobody could have written are an error, and no reason to fall.
        let _ = engine.lines(&entry.id);
    }
    let word = |word: &str| AskedWord { word: word.to_owned(), weight: 1.0 };
    let phrase = Phrase { words: vec!["good".to_owned(), "morning".to_owned()], forms: Forms::AsTheyAre };
    for phrases in [Vec::new(), vec![phrase]] {
        let ask = WordsAsked { words: vec![word("morning"), word("film")], phrases, limit: 5, ..WordsAsked::default() };
        let found = engine.passages(&ask, &Filter::default())?;
        assert!(found.passages.len() <= 5, "{} passages of five", found.passages.len());
    }
    if let Some(query) = Embedding::unit(ones) {
        let _ = engine.nearest(&query, &Nearest { count: 3, effort: Effort::Exact, ..Nearest::default() });
    }
    engine.status()?;
    engine.verify(&Progress::new()).map(drop)
}

fn write(disk: &Memory) -> Result<()> {
    let engine = open(disk, FOLDER)?;
    let before = engine.videos()?;
    engine.put(&entry("fuzzed in"), &[])?;
    let after = open(disk, FOLDER)?.videos()?;
    for entry in before.iter().filter(|entry| entry.id.as_str() != "fuzzed in") {
        assert!(after.contains(entry), "`{}` was there before a write and is not after it", entry.id);
    }
    Ok(())
}

fn compact(disk: &Memory) -> Result<()> {
    let engine = open(disk, FOLDER)?;
    let before = engine.videos()?;
    if engine.compact(&Progress::new()).is_ok() {
        let after = open(disk, FOLDER)?;
        let lost = before.iter().filter(|entry| !after.videos().is_ok_and(|after| after.contains(entry))).count();
        assert_eq!(lost, 0, "videos were lost by compacting");
    }
    Ok(())
}

fn rescue(disk: &Memory) -> Result<()> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (from, to) = (Utf8Path::new(FOLDER), Utf8Path::new(RESCUED));
    salvage_on(&shared, from, to, Some("none"), Overwrite::Force, &Progress::new())?;
    let mut faults = open(disk, RESCUED)?.verify(&Progress::new())?;
    // What was put so under a checksum that fits is kept so.
    faults.retain(|fault| !fault.problem.contains("no length") && !fault.problem.contains("words cannot be read"));
    assert!(faults.is_empty(), "what was salvaged is not sound: {faults:?}");
    Ok(())
}

fn entry(id: &str) -> VideoEntry {
    VideoEntry::without_file(id, 99.0)
}

/// A small index with a graph: its disk, the graph's file, and what `graph.json` says.
fn indexed() -> Result<(Memory, String, Value)> {
    let disk = Memory::default();
    let engine = Embedded::create_on(Arc::new(disk.clone()), Utf8Path::new(FOLDER), WIDTH, Overwrite::Never)?;
    let mut rng = Rng::new(3);
    for film in 0..4 {
        let moments = (0..24).filter_map(|n| {
            let embedding = Embedding::unit((0..WIDTH).map(|_| rng.normal() as f32).collect())?;
            Some(IndexedMoment { span: Span::new(f64::from(n), f64::from(n) + 1.0).ok()?, embedding })
        });
        let line = |n: u32| {
            let span = Span::new(f64::from(n), f64::from(n) + 1.0).ok()?;
            let text = format!("good morning from film {film}");
            let words = vec![Word { span, text: "good".to_owned() }];
            let track = if n < 2 { Track::Said } else { Track::Written };
            Some((track, Line { span, text, words, confidence: 0.5 }))
        };
        let lines: Vec<_> = (0..film).filter_map(line).collect();
        engine.put_with_words(&entry(&format!("film{film}")), &moments.collect::<Vec<_>>(), &lines)?;
    }
    engine.remove(&"film2".into())?;
    engine.settle(Settling::Fully, &Progress::new())?;
    let about =
        disk.get("/index/graph.json").and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null);
    Ok((disk, format!("/index/graph-{}.hnsw", about["number"]), about))
}

/// The log and the graph of a small index, to begin with: fuzzing from nothing would hardly ever find a log.
pub fn example() -> Vec<(&'static str, Vec<u8>)> {
    let Ok((disk, graph, _)) = indexed() else { return Vec::new() };
    [("log", disk.get(LOG)), ("graph", disk.get(&graph))]
        .into_iter()
        .filter_map(|(name, bytes)| Some((name, bytes?)))
        .collect()
}
