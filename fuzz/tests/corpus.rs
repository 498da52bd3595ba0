//! The bounded run: every fixture and every stored input, whole, cut short and mutated, through every reader.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop loudly.

use std::path::{Path, PathBuf};

use cuemark_core::Rng;
use cuemark_fuzz::mutate::{mutated, pickle};
use cuemark_fuzz::{READERS, Reader, feed};

/// Larger files are cut here: mutations of a long file mostly repeat themselves.
const LONGEST: usize = 4 << 10;
/// Mutations of each file, each fed to every reader.
const MUTATIONS: usize = 24;

#[test]
fn every_target_has_a_reader_and_every_reader_a_target() {
    let targets = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/targets"));
    let mut files: Vec<String> =
        files_below(targets).iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort();
    let readers: Vec<&str> = READERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, readers);
}

#[test]
fn fixtures_and_stored_inputs_never_panic_a_reader() {
    let seeds = seeds();
    assert!(seeds.len() >= 10, "only {} files to start from", seeds.len());
    for (path, bytes) in &seeds {
        every_reader(bytes, &format!("{}", path.display()));
    }
}

#[test]
fn mutated_fixtures_never_panic_a_reader() {
    for (path, bytes) in seeds() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut rng = Rng::stream(1, &name);
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        for round in 0..MUTATIONS {
            every_reader(&mutated(&mut rng, bytes), &format!("{} mutation {round}", path.display()));
        }
    }
}

#[test]
fn pickles_that_mean_something_never_panic_and_stay_within_the_budget() {
    let mut rng = Rng::stream(1, "pickles");
    for _ in 0..2_000 {
        feed(cuemark_fuzz::pickles, &pickle(&mut rng));
    }
}

/// Feeds `bytes` to every reader and says which input it was when one panics.
fn every_reader(bytes: &[u8], what: &str) {
    for (name, reader) in READERS {
        let fed = std::panic::catch_unwind(|| feed(*reader as Reader, bytes));
        assert!(fed.is_ok(), "{name} panicked on {what}");
    }
}

/// Fixtures and stored inputs, in order.
fn seeds() -> Vec<(PathBuf, Vec<u8>)> {
    let stored = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"));
    let mut paths = files_below(cuemark_testkit::fixture("").as_std_path());
    paths.extend(files_below(stored));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
