//! The encoder that comes with the program: trained once on 50,000 films of the built-in world, none of which the demo shows.
//!
//! `runs/rmmn/world-search.toml` is its recipe, `results/notes/encoder-2026-11-17.md` its log and figures.

use camino::Utf8Path;
use cuemark_formats::{Overwrite, WholeFile};

/// What an index would keep of its run, by name, and the curve that was fitted on films that it had not seen.
const FILES: &[(&str, &[u8])] = &[
    ("run.toml", include_bytes!("../../../encoder/run.toml")),
    ("search.json", include_bytes!("../../../encoder/search.json")),
    ("vocabulary.txt", include_bytes!("../../../encoder/vocabulary.txt")),
    ("verbs.txt", include_bytes!("../../../encoder/verbs.txt")),
    ("calibration.json", include_bytes!("../../../encoder/calibration.json")),
    ("checkpoints/best.safetensors", include_bytes!("../../../encoder/checkpoints/best.safetensors")),
];

/// Lays the encoder's files into `folder`, where an index can be made with it.
pub(super) fn unpack(folder: &Utf8Path) -> anyhow::Result<()> {
    for (name, bytes) in FILES {
        WholeFile::write_all_to(folder.join(name), Overwrite::Force, bytes)?;
    }
    Ok(())
}
