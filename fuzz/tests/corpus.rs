//! The bounded run: every fixture and every stored input, whole, cut short and mutated, through every reader.

#![cfg(test)] // so that clippy.toml knows the helpers for tests too

use std::path::{Path, PathBuf};

use cuemark_core::Rng;
use cuemark_fuzz::mutate::{mutated, pickle};
use cuemark_fuzz::structure::{changed, sealed};
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
        every_reader(bytes, None, &format!("{}", path.display()));
    }
}

#[test]
fn mutated_fixtures_never_panic_a_reader() {
    for (path, bytes) in seeds() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut rng = Rng::stream(1, &name);
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        for round in 0..MUTATIONS {
            // What is stored for one reader is changed for that reader, as what it is, and a fixture for all of them.
            let own = target_of(&path);
            let changed = own.and_then(|own| changed(&mut rng, own, bytes)).filter(|_| round % 2 == 0);
            let input = changed.unwrap_or_else(|| mutated(&mut rng, bytes));
            every_reader(&input, own, &format!("{} mutation {round}", path.display()));
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

#[test]
fn a_log_that_is_sealed_again_is_the_log_it_was_and_a_changed_one_is_read() {
    let (_, log) = cuemark_fuzz::example().into_iter().find(|(name, _)| *name == "log").unwrap();
    assert_eq!(sealed(log.clone()), log);
    // Without a new seal a changed description costs its record.
    let place = log.windows(5).position(|piece| piece == b"film1").unwrap();
    let mut changed = log;
    changed[place + 4] = b'9';
    let changed = sealed(changed);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("moments.log"), changed).unwrap();
    let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
    let engine = cuemark_search::engine::Embedded::open(folder).unwrap();
    let names: Vec<String> =
        cuemark_search::Engine::videos(&engine).unwrap().iter().map(|entry| entry.id.to_string()).collect();
    assert!(names.contains(&"film9".to_owned()), "{names:?}");
}

/// The target that a stored input is for; `None` of a fixture.
fn target_of(path: &Path) -> Option<&'static str> {
    let stored = path.strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).ok()?;
    let target = stored.iter().next()?.to_str()?;
    READERS.iter().map(|(name, _)| *name).find(|name| *name == target)
}

/// Feeds `bytes` to every reader, or to the one of a target, and says which input it was when one panics.
fn every_reader(bytes: &[u8], target: Option<&str>, what: &str) {
    for (name, reader) in READERS.iter().filter(|(name, _)| target.is_none_or(|target| target == *name)) {
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
