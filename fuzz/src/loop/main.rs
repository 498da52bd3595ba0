//! `fuzz-loop run|minimise …`: every target in processes of their own on all cores, with any compiler.
//!
//! Stored inputs and fixtures are changed, blindly and as what they are; pickles are made up as well. The target that has run
//! least runs next, so that all come about equally far. Where the code was compiled to count its edges (`cargo xtask verify
//! fuzz` does so), an input that reaches new ones is changed further, and the table says how many were reached.
//!
//! An input that panics a reader, ends its process, takes longer than ten seconds or more than two gigabytes is kept, and the
//! program ends with 1.

#![allow(clippy::print_stdout, clippy::print_stderr)] // it talks to the terminal and to nothing else

mod minimise;
mod overseer;
mod seeds;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use cuemark_fuzz::{READERS, Reader};

/// More ways than any reader has.
const REPLAYED: usize = 32;

const USAGE: &str = "usage: fuzz-loop run SECONDS CORES EXECUTIONS CORPUS FIXTURES OUT [TARGET …]
       fuzz-loop minimise CORPUS FIXTURES OUT INTO [TARGET …]
       fuzz-loop replay TARGET FILE

run: for SECONDS, or until every target was run EXECUTIONS times (0: for all of the time). OUT gets `finds/`, inputs that broke
something, and `pool/TARGET/`, inputs that reached something new. minimise: copies those of OUT/pool to INTO/TARGET without which
something would not be reached. replay: one input in every way, with the times that they took.";

/// Where things are.
#[derive(Debug, Clone)]
struct Places {
    corpus: PathBuf,
    fixtures: PathBuf,
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", seconds, cores, executions, corpus, fixtures, out, wanted @ ..] => {
            run((seconds, cores, executions), &places(corpus, fixtures, out), wanted)
        }
        ["minimise", corpus, fixtures, out, into, wanted @ ..] => {
            let places = places(corpus, fixtures, out);
            Some(chosen(wanted).all(|(name, reader)| minimise::minimise(name, reader, &places, into.as_ref())))
        }
        ["replay", target, file] => replay(target, file),
        ["worker", target, seconds, folder, corpus, fixtures, out, seed] => {
            worker(target, (seconds, seed), folder, &places(corpus, fixtures, out))
        }
        _ => None,
    };
    match done {
        Some(held) => ExitCode::from(u8::from(!held)),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn places(corpus: &str, fixtures: &str, out: &str) -> Places {
    Places { corpus: corpus.into(), fixtures: fixtures.into(), out: out.into() }
}

/// The targets that were named, or all.
fn chosen<'a>(wanted: &'a [&str]) -> impl Iterator<Item = (&'static str, Reader)> + 'a {
    READERS.iter().copied().filter(|(name, _)| wanted.is_empty() || wanted.contains(name))
}

fn run((seconds, cores, executions): (&str, &str, &str), places: &Places, wanted: &[&str]) -> Option<bool> {
    let limits = overseer::Limits {
        time: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
        cores: cores.parse().ok()?,
        executions: executions.parse().ok()?,
    };
    let names: Vec<&'static str> = chosen(wanted).map(|(name, _)| name).collect();
    match overseer::oversee(&names, &limits, places) {
        Ok(held) => Some(held),
        Err(error) => {
            eprintln!("fuzz-loop: {error}");
            Some(false)
        }
    }
}

fn replay(target: &str, file: &str) -> Option<bool> {
    let (_, reader) = READERS.iter().copied().find(|(name, _)| *name == target)?;
    let (bytes, folder) = (std::fs::read(file).ok()?, tempfile::tempdir().ok()?);
    let folder = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).ok()?;
    for way in 0..REPLAYED {
        let begin = std::time::Instant::now();
        eprint!("way {way}: ");
        cuemark_fuzz::feed_in(&folder, reader, cuemark_fuzz::Turn::One(way), &bytes);
        eprintln!("{:.3} s", begin.elapsed().as_secs_f64());
    }
    Some(true)
}

fn worker(target: &str, (seconds, seed): (&str, &str), folder: &str, places: &Places) -> Option<bool> {
    let (name, reader) = READERS.iter().copied().find(|(name, _)| *name == target)?;
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    worker::work(name, reader, time, seed.parse().ok()?, folder.into(), places)?;
    Some(true)
}
