//! Where things lie in the folder of a built-in world, for whoever makes one and whoever reads it.

use camino::{Utf8Path, Utf8PathBuf};

/// What a run file and a study call the dataset.
pub const WORLD: &str = "world";

/// Parses of all queries.
pub const PARSES: &str = "parses.jsonl";

/// The queries of one split.
pub fn split(world: &Utf8Path, name: &str) -> Utf8PathBuf {
    world.join("splits").join(format!("{name}.jsonl"))
}

/// The clip ratings of one split, in QVHighlights' layout.
pub fn ratings(world: &Utf8Path, split: &str) -> Utf8PathBuf {
    world.join("highlights").join(format!("{split}.jsonl"))
}

/// The clip features of one of the world's eyes: `motion`, `shape` or `weak`.
pub fn features(world: &Utf8Path, eyes: &str) -> Utf8PathBuf {
    world.join(format!("features-{eyes}"))
}
