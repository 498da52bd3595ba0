//! `kill -9` at random points while a child process adds videos.
#![allow(clippy::unwrap_used)] // a test may panic

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Rng, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine, Filter, Moment, Nearest, Settling, VideoEntry, VideoState};

/// Says to the child where to write.
const FOLDER: &str = "CUEMARK_CRASH_FOLDER";
const WIDTH: usize = 32;
const MOMENTS: usize = 40;
const KILLS: usize = 50;

fn moments(video: usize) -> Vec<Moment> {
    let mut rng = Rng::stream(video as u64, "moments");
    let mut moment = |n: usize| Moment {
        span: Span::new(n as f64, n as f64 + 1.5).unwrap(),
        embedding: Embedding::unit((0..WIDTH).map(|_| rng.normal() as f32).collect()).unwrap(),
    };
    (0..MOMENTS).map(&mut moment).collect()
}

fn entry(video: usize) -> VideoEntry {
    let id = VideoId::new(format!("v{video:05}"));
    VideoEntry { id, path: None, duration: 99.0, bytes: 0, modified: 0, tags: vec![], state: VideoState::Present }
}

/// The child: adds videos for as long as it lives and says so after each, removing every tenth again.
#[test]
fn child_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let engine = Embedded::open(Utf8Path::new(&folder)).unwrap();
    let first = engine.videos().unwrap().last().map_or(0, |last| last.id.as_str()[1..].parse::<usize>().unwrap() + 1);
    let mut out = std::io::stdout();
    for video in first.. {
        engine.put(&entry(video), &moments(video)).unwrap();
        writeln!(out, "put {video}").unwrap();
        if video % 10 == 9 {
            engine.remove(&entry(video - 5).id).unwrap();
            writeln!(out, "removed {}", video - 5).unwrap();
        }
        if video % 7 == 3 {
            engine.settle(Settling::Fully, &mut |_, _| {}).unwrap();
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
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(FOLDER, &folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // Once it writes, it may live a little longer: from nothing to several records.
        let mut note = |line: &str| {
            // The harness puts its own words in front of the first line.
            if let Some(at) = line.find("put ") {
                put.extend(line[at + 4..].trim().parse::<usize>());
            } else if let Some(at) = line.find("removed ") {
                removed.extend(line[at + 8..].trim().parse::<usize>());
            }
            line.contains("put ")
        };
        while lines.read_line(&mut line).unwrap() > 0 && !note(&line) {
            line.clear();
        }
        std::thread::sleep(Duration::from_micros(rng.below(20_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        line.clear();
        while lines.read_line(&mut line).unwrap() > 0 {
            // A line that was cut short acknowledges nothing.
            if line.ends_with('\n') {
                note(&line);
            }
            line.clear();
        }
        check(&folder, &put, &removed, kill);
    }
    assert!(put.len() > KILLS, "the child wrote too little: {}", put.len());
}

fn check(folder: &Utf8Path, put: &BTreeSet<usize>, removed: &BTreeSet<usize>, kill: usize) {
    let engine = Embedded::open(folder).unwrap();
    assert_eq!(engine.verify(&mut |_, _| {}).unwrap(), [], "after kill {kill}");
    for video in put.iter().rev().take(8).chain(put.iter().step_by(13)) {
        let id = entry(*video).id;
        let found = engine.moments(&id).unwrap();
        if removed.contains(video) {
            assert_eq!(found, None, "v{video} came back after kill {kill}");
            continue;
        }
        // The child may have removed it without having had the time to say so.
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
