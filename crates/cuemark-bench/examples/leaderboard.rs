//! Lays the table of `results/runs/runs-*.json` into `results/world.md` and writes `docs/findings.md`: what `cargo xtask leaderboard` runs.

use camino::Utf8Path;
use cuemark_bench::findings::{Sources, findings};
use cuemark_bench::leaderboard::{laid_into, table};
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let tables = root.join("results/world.md");
    let text = Source::new(&tables).text()?;
    let sources = Sources::read(root)?;
    let fresh = laid_into(&text, &table(&sources.runs));
    let fresh = fresh.ok_or_else(|| ReadError::file(&tables, "has no place for the leaderboard"))?;
    WholeFile::write_all_to(tables, Overwrite::Force, fresh.as_bytes())?;
    Ok(WholeFile::write_all_to(root.join("docs/findings.md"), Overwrite::Force, findings(&sources).as_bytes())?)
}
