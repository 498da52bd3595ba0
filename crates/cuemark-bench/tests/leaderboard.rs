//! The tables and the findings show what `results/` holds.
#![allow(clippy::unwrap_used)] // a test may panic

use camino::Utf8Path;
use cuemark_bench::findings::{Sources, findings};
use cuemark_bench::leaderboard::{laid_into, read_folder, table};

#[test]
fn the_tables_and_the_findings_are_fresh() {
    let root = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let files = read_folder(&root.join("results/runs")).unwrap();
    let tables = read("results/world.md");
    assert!(
        tables == laid_into(&tables, &table(&files)).unwrap(),
        "results/world.md is stale: run `cargo xtask leaderboard`"
    );
    let sources = Sources::read(root).unwrap();
    assert!(read("docs/findings.md") == findings(&sources), "docs/findings.md is stale: run `cargo xtask leaderboard`");
}
