//! The bounded run: every fixture and every stored input, whole, cut short and mutated, through every reader.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop loudly.

use std::path::{Path, PathBuf};

use cuemark_core::Rng;
use cuemark_fuzz::{READERS, Reader, feed};

/// Larger files are cut here: mutations of a long file mostly repeat themselves.
const LONGEST: usize = 4 << 10;
/// Mutations of each file, each fed to every reader.
const MUTATIONS: usize = 24;

/// Pieces that have broken parsers before.
const NASTY: &[&[u8]] = &[
    b"NaN",
    b"1e308",
    b"-1e308",
    b"1e999",
    b"-0",
    b"null",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\"\\ud800\"",
    b"\xff\xfe",
    b"\0",
    b"\n\n",
    b"\r",
    b"18446744073709551616",
    b"-1",
    b"\"\"",
    b"[]",
    b"{}",
    b",,",
    b"-->",
    b"##",
    b"\xef\xbb\xbf",
];

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

/// Feeds `bytes` to every reader and says which input it was when one panics.
fn every_reader(bytes: &[u8], what: &str) {
    for (name, reader) in READERS {
        let fed = std::panic::catch_unwind(|| feed(*reader as Reader, bytes));
        assert!(fed.is_ok(), "{name} panicked on {what}");
    }
}

fn mutated(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let place = rng.below(bytes.len() + 1);
        match rng.below(5) {
            0 => bytes.truncate(place),
            1 => {
                let piece = rng.pick(NASTY).copied().unwrap_or_default();
                bytes.splice(place..place, piece.iter().copied());
            }
            2 => {
                let end = (place + 1 + rng.below(16)).min(bytes.len());
                bytes.drain(place.min(end)..end);
            }
            3 => {
                let piece = bytes[place..(place + 64).min(bytes.len())].to_vec();
                bytes.splice(place..place, piece);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = rng.bits() as u8;
                }
            }
        }
    }
    bytes
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
