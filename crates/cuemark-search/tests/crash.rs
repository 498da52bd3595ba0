//! `kill -9` at random points while a child process adds videos, and while it compacts.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Line, Progress, Rng, Span, Track, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine, Filter, IndexedMoment, Nearest, SearchError, Settling, VideoEntry};

/// Says to the child where to write.
const FOLDER: &str = "CUEMARK_CRASH_FOLDER";
const WIDTH: usize = 32;
const MOMENTS: usize = 40;

/// How often a child is killed: more often where `cargo xtask verify kills` says so.
fn kills(usual: usize) -> usize {
    std::env::var("CUEMARK_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(usual)
}

fn moments(video: usize) -> Vec<IndexedMoment> {
    let mut rng = Rng::stream(video as u64, "moments");
    let mut moment = |n: usize| IndexedMoment {
        span: Span::new(n as f64, n as f64 + 1.5).unwrap(),
        embedding: Embedding::unit((0..WIDTH).map(|_| rng.normal() as f32).collect()).unwrap(),
    };
    (0..MOMENTS).map(&mut moment).collect()
}

/// What is said in every other video, and what is written in two of three.
fn lines(video: usize) -> Vec<(Track, Line)> {
    let line = |track: Track, n: usize| {
        let span = Span::new(2.0 * n as f64, 2.0 * n as f64 + 1.0).unwrap();
        let text = format!("this is line {n}, {}, of film v{video}", track.name());
        (track, Line { span, text, words: Vec::new(), confidence: 1.0 })
    };
    let of = |track: Track, count: usize| (0..count).map(move |n| line(track, n));
    of(Track::Said, video % 2 * 25).chain(of(Track::Written, video % 3 * 10)).collect()
}

fn entry(video: usize) -> VideoEntry {
    VideoEntry::without_file(VideoId::new(format!("v{video:05}")), 99.0)
}

/// The child: adds videos for as long as it lives and says so after each, removing every tenth again.
#[test]
fn child_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let engine = Embedded::open(Utf8Path::new(&folder)).unwrap();
    let first = engine.videos().unwrap().last().map_or(0, |last| last.id.as_str()[1..].parse::<usize>().unwrap() + 1);
    let mut out = std::io::stdout();
    for video in first.. {
        engine.put_with_words(&entry(video), &moments(video), &lines(video)).unwrap();
        writeln!(out, "put {video}").unwrap();
        if video % 10 == 9 {
            engine.remove(&entry(video - 5).id).unwrap();
            writeln!(out, "removed {}", video - 5).unwrap();
        }
        if video % 7 == 3 {
            engine.settle(Settling::Fully, &Progress::new()).unwrap();
        }
        out.flush().unwrap();
    }
}

#[test]
fn everything_acknowledged_survives_being_killed_at_fifty_random_points() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    Embedded::create(&folder, WIDTH, Overwrite::Never).unwrap();
    let mut rng = Rng::new(11);
    let (mut put, mut removed) = (BTreeSet::new(), BTreeSet::new());
    let kills = kills(50);
    for kill in 0..kills {
        // Once it writes, it may live a little longer: from nothing to several records.
        for line in said_before_killed("child_that_is_killed", &folder, rng.below(20_000)) {
            put.extend(said(&line, "put "));
            removed.extend(said(&line, "removed "));
        }
        check(&folder, &put, &removed, kill);
    }
    assert!(put.len() > kills, "the child wrote too little: {}", put.len());
}

/// The child: replaces one video after the other and compacts in between, for as long as it lives.
#[test]
fn child_that_is_killed_compacting() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let engine = Embedded::open(Utf8Path::new(&folder)).unwrap();
    let mut out = std::io::stdout();
    for round in 0.. {
        let video = round % COMPACTED;
        engine.put_with_words(&entry(video), &moments(video), &lines(video)).unwrap();
        engine.remove(&entry(COMPACTED + round % 2).id).unwrap();
        engine.put(&entry(COMPACTED + round % 2), &moments(round)).unwrap();
        let waste = engine.status().unwrap().waste;
        writeln!(out, "put {video}").unwrap();
        out.flush().unwrap();
        engine.compact(&Progress::new()).unwrap();
        assert!(waste > Some(0));
        assert_eq!(engine.status().unwrap().waste, Some(0));
        writeln!(out, "compacted {round}").unwrap();
        out.flush().unwrap();
    }
}

/// Videos of the compaction's test, beside two that come and go.
const COMPACTED: usize = 60;

#[test]
fn a_compaction_killed_at_forty_random_points_loses_nothing() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let engine = Embedded::create(&folder, WIDTH, Overwrite::Never).unwrap();
    for video in 0..COMPACTED {
        engine.put_with_words(&entry(video), &moments(video), &lines(video)).unwrap();
    }
    engine.settle(Settling::Fully, &Progress::new()).unwrap();
    drop(engine);
    let put: BTreeSet<usize> = (0..COMPACTED).collect();
    let mut rng = Rng::new(12);
    let mut compacted = 0;
    for kill in 0..kills(40) {
        // Every other one soon, while the log is being written.
        let longest = if kill % 2 == 0 { 3_000 } else { 60_000 };
        let lines = said_before_killed("child_that_is_killed_compacting", &folder, rng.below(longest));
        compacted += lines.iter().filter(|line| line.contains("compacted ")).count();
        check(&folder, &put, &BTreeSet::new(), kill);
        let engine = Embedded::open(&folder).unwrap();
        assert!(engine.videos().unwrap().len() >= COMPACTED, "after kill {kill}");
    }
    assert!(compacted > 0, "no compaction was finished");
    let engine = Embedded::open(&folder).unwrap();
    engine.compact(&Progress::new()).unwrap();
    assert!(!folder.join("moments.part").exists(), "a writer removes what an earlier one left");
}

/// The child: makes an index in a folder of its own by force, puts a video and goes on with the next folder.
#[test]
fn child_that_is_killed_creating() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut out = std::io::stdout();
    for round in 0.. {
        let engine = Embedded::create(Utf8Path::new(&folder), WIDTH, Overwrite::Force).unwrap();
        engine.put(&entry(round), &moments(round)).unwrap();
        engine.remove(&entry(round + 1).id).unwrap();
        engine.put(&entry(round + 1), &moments(round + 1)).unwrap();
        engine.settle(Settling::Fully, &Progress::new()).unwrap();
        writeln!(out, "put {round}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn an_index_whose_making_was_killed_at_thirty_random_points_opens_or_can_be_made() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let mut rng = Rng::new(13);
    for kill in 0..kills(30) {
        said_before_killed("child_that_is_killed_creating", &folder, rng.below(10_000));
        let engine = Embedded::open(&folder).unwrap();
        assert_eq!(engine.verify(&Progress::new()).unwrap(), [], "after kill {kill}");
        // Whole videos or none, whatever was being made.
        for entry in engine.videos().unwrap() {
            assert_eq!(engine.moments(&entry.id).unwrap().unwrap().len(), MOMENTS, "after kill {kill}");
        }
        engine.put(&entry(0), &moments(0)).unwrap();
    }
}

#[test]
fn one_that_compacts_and_one_that_makes_the_index_anew_do_not_harm_each_other() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let engine = Embedded::create(&folder, WIDTH, Overwrite::Never).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let is_over = &is_over;
    std::thread::scope(|scope| {
        let folder = &folder;
        scope.spawn(move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let made = Embedded::create(folder, WIDTH, Overwrite::Force);
                assert!(made.is_ok() || matches!(made, Err(SearchError::Locked { .. })));
                // The other one must get a turn, however quick this machine is.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let (mut locked, mut round) = (0, 0);
        while round < 200 || (locked == 0 && round < 20_000) {
            round += 1;
            let done = engine
                .put(&entry(round), &moments(round))
                .and_then(|()| engine.put(&entry(round), &moments(round)))
                .and_then(|()| engine.compact(&Progress::new()));
            match done {
                // From the first put until the compaction is over nobody else makes anything.
                Ok(_) => locked += 1,
                Err(SearchError::Locked { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(locked > 0);
    });
    assert_eq!(Embedded::open(&folder).unwrap().verify(&Progress::new()).unwrap(), []);
}

/// The number that a line gives behind `word`; the harness puts its own words in front of the first line.
fn said(line: &str, word: &str) -> Option<usize> {
    line.split_once(word)?.1.trim().parse().ok()
}

/// What a child said that was killed some microseconds after its first word. A line that was cut short says nothing.
fn said_before_killed(child: &str, folder: &Utf8Path, microseconds: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([child, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let (mut lines, mut line) = (Vec::new(), String::new());
    while from.read_line(&mut line).unwrap() > 0 {
        lines.push(std::mem::take(&mut line));
        if lines.last().is_some_and(|line| line.contains("put ")) {
            break;
        }
    }
    std::thread::sleep(Duration::from_micros(microseconds as u64));
    child.kill().unwrap();
    child.wait().unwrap();
    while from.read_line(&mut line).unwrap() > 0 {
        lines.push(std::mem::take(&mut line));
    }
    lines.retain(|line| line.ends_with('\n'));
    lines
}

fn check(folder: &Utf8Path, put: &BTreeSet<usize>, removed: &BTreeSet<usize>, kill: usize) {
    let engine = Embedded::open(folder).unwrap();
    assert_eq!(engine.verify(&Progress::new()).unwrap(), [], "after kill {kill}");
    for video in put.iter().rev().take(8).chain(put.iter().step_by(13)) {
        let id = entry(*video).id;
        let found = engine.moments(&id).unwrap();
        if removed.contains(video) {
            assert_eq!(found, None, "v{video} came back after kill {kill}");
            continue;
        }
        // The child may have removed it without having had the time to say so; moments and words go together.
        assert_eq!(found.is_some(), engine.lines(&id).unwrap().is_some_and(|found| found == lines(*video)), "v{video}");
        let Some(found) = found else {
            assert_eq!(video % 10, 4, "v{video} was lost by kill {kill}");
            continue;
        };
        assert_eq!(found.len(), MOMENTS, "v{video} after kill {kill}");
        let wanted = moments(*video).swap_remove(video % MOMENTS);
        for effort in [Effort::Exact, Effort::Approximate] {
            let hits =
                engine.nearest(&wanted.embedding, &Nearest { count: 1, filter: Filter::default(), effort }).unwrap();
            assert_eq!((&hits[0].video, hits[0].span), (&id, wanted.span), "after kill {kill}");
        }
    }
}
