//! Inputs to begin with, and new ones made of them.

use std::path::{Path, PathBuf};

use cuemark_core::Rng;
use cuemark_fuzz::mutate::{mutated, pickle};
use cuemark_fuzz::{example, structure};

use crate::Places;

/// Mutations of a long file mostly repeat themselves.
const LONGEST: usize = 16 << 10;

/// Inputs to begin with: stored ones first, then those that reached something new, then the fixtures.
pub(crate) struct Seeds {
    target: &'static str,
    files: Vec<Vec<u8>>,
    /// How many of them are the target's own.
    own: usize,
}

impl Seeds {
    pub(crate) fn of(target: &'static str, places: &Places) -> Self {
        let read = |folder: &Path| -> Vec<Vec<u8>> {
            let files = files_below(folder).into_iter().filter_map(|path| std::fs::read(path).ok());
            files.filter(|bytes| bytes.len() <= LONGEST).collect()
        };
        let mut files = read(&places.corpus.join(target));
        files.extend(example().into_iter().filter(|(name, _)| *name == target).map(|(_, bytes)| bytes));
        files.extend(read(&places.out.join("pool").join(target)));
        files.push(Vec::new());
        let own = files.len();
        files.extend(read(&places.fixtures));
        Self { target, files, own }
    }

    /// All that there are, of the target's own and of others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(Vec::as_slice)
    }

    /// One that reached something new.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) {
        self.files.insert(self.own, bytes);
        self.own += 1;
    }

    /// A new input.
    pub(crate) fn one(&self, rng: &mut Rng) -> Vec<u8> {
        if matches!(self.target, "pickles" | "features") && rng.below(3) == 0 {
            let made = pickle(rng);
            return if rng.below(2) == 0 { made } else { mutated(rng, &made) };
        }
        let some = |rng: &mut Rng| {
            let among = if rng.below(4) == 0 { self.files.len() } else { self.own };
            self.files.get(rng.below(among)).map(Vec::as_slice).unwrap_or_default()
        };
        let seed = some(rng);
        let made = match rng.below(8) {
            0..4 => structure::changed(rng, self.target, seed),
            4 => {
                // The beginning of one and the end of another.
                let other = some(rng);
                let (cut, from) = (rng.below(seed.len() + 1), rng.below(other.len() + 1));
                let ends = [seed.get(..cut), other.get(from..)];
                Some(ends.iter().flatten().flat_map(|part| part.iter().copied()).collect())
            }
            _ => None,
        };
        let mut made = made.unwrap_or_else(|| mutated(rng, seed));
        made.truncate(2 * LONGEST);
        made
    }
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect();
    files.sort();
    files
}
