//! `fuzz-loop SECONDS CORPUS FIXTURES FINDS [TARGET …]`: every target for so long, on all cores, with any compiler.
//!
//! Stored inputs and fixtures are mutated without guidance; pickles are made up as well. Prints how often each target ran. An
//! input that panics a reader, or takes it longer than ten seconds, is kept in FINDS, and the program ends with 1.

#![allow(clippy::print_stdout, clippy::print_stderr)] // it talks to the terminal and to nothing else

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cuemark_core::Rng;
use cuemark_fuzz::mutate::{mutated, pickle};
use cuemark_fuzz::{READERS, Reader, feed_in};

/// Mutations of a long file mostly repeat themselves.
const LONGEST: usize = 16 << 10;
/// A reader that takes longer for so little hangs.
const SLOW: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, corpus, fixtures, finds, wanted @ ..] = arguments.as_slice() else {
        eprintln!("usage: fuzz-loop SECONDS CORPUS FIXTURES FINDS [TARGET …]");
        return ExitCode::from(2);
    };
    let Ok(seconds) = seconds.parse::<f64>() else { return ExitCode::from(2) };
    // Every panic is caught and its input kept; a line for each of a million says nothing.
    std::panic::set_hook(Box::new(|_| {}));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut total, mut bad) = (0, 0);
    for (name, reader) in READERS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name)) {
        let seeds = Seeds::of(name, Path::new(corpus), Path::new(fixtures));
        let (runs, found) = (AtomicU64::new(0), AtomicU64::new(0));
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        std::thread::scope(|scope| {
            for core in 0..cores {
                let (seeds, runs, found) = (&seeds, &runs, &found);
                scope.spawn(move || run(name, *reader, seeds, core, until, Path::new(finds), (runs, found)));
            }
        });
        let (runs, found) = (runs.into_inner(), found.into_inner());
        println!("{name:<12} {runs:>12} executions, {:>4} inputs to begin with, {found} bad", seeds.files.len());
        total += runs;
        bad += found;
    }
    println!("{:<12} {total:>12} executions, {bad} bad; unguided, so no coverage is measured", "total");
    ExitCode::from(u8::from(bad > 0))
}

/// Inputs to begin with.
struct Seeds {
    files: Vec<Vec<u8>>,
    /// Whether some are made up.
    pickles: bool,
}

impl Seeds {
    /// Those stored for the target come first and, being few, are taken half of the time.
    fn of(name: &str, corpus: &Path, fixtures: &Path) -> Self {
        let mut paths = files_below(&corpus.join(name));
        paths.extend(files_below(fixtures));
        let short = |mut bytes: Vec<u8>| {
            bytes.truncate(LONGEST);
            bytes
        };
        let mut files: Vec<Vec<u8>> = paths.iter().filter_map(|path| std::fs::read(path).ok()).map(short).collect();
        files.push(Vec::new());
        Self { files, pickles: matches!(name, "pickles" | "features") }
    }

    fn one(&self, rng: &mut Rng) -> Vec<u8> {
        if self.pickles && rng.below(2) == 0 {
            let made = pickle(rng);
            return if rng.below(2) == 0 { made } else { mutated(rng, &made) };
        }
        let few = if rng.below(2) == 0 { self.files.len() } else { self.files.len().min(8) };
        let place = rng.below(few);
        mutated(rng, self.files.get(place).map(Vec::as_slice).unwrap_or_default())
    }
}

fn run(
    name: &str,
    reader: Reader,
    seeds: &Seeds,
    core: usize,
    until: Instant,
    finds: &Path,
    (runs, found): (&AtomicU64, &AtomicU64),
) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let Ok(folder) = Utf8PathBuf::from_path_buf(folder.path().to_owned()) else { return };
    // Another stream of changes every time: what a fixed seed finds is found by the tests.
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut rng = Rng::stream(seed as u64, &format!("{name} {core}"));
    while Instant::now() < until {
        let input = seeds.one(&mut rng);
        let begin = Instant::now();
        let fed = std::panic::catch_unwind(|| feed_in(&folder, reader, &input));
        runs.fetch_add(1, Ordering::Relaxed);
        let slow = begin.elapsed() > SLOW;
        if fed.is_err() || slow {
            let number = found.fetch_add(1, Ordering::Relaxed);
            let path = finds.join(format!("{name}-{}-{core}-{number}", if slow { "slow" } else { "panic" }));
            let kept = std::fs::write(&path, &input);
            eprintln!("{name}: {} ({})", path.display(), if kept.is_ok() { "kept" } else { "could not be kept" });
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect();
    files.sort();
    files
}
