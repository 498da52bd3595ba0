//! One crate per file, behind one trait.

mod arroy;
mod hnsw_rs;
mod ours;
mod usearch;

use anyhow::bail;
use camino::Utf8Path;

use crate::vectors::Vectors;

/// An index that answers.
pub trait Side: Sync {
    /// Numbers of the nearest moments, best first.
    fn nearest(&self, query: &[f32], effort: usize) -> anyhow::Result<Vec<usize>>;
}

/// An index that was built and lies in its folder.
pub trait Built {
    /// Writes it over what the folder holds, as an application that adds something would.
    fn rewrite(&mut self) -> anyhow::Result<()>;
}

/// Every side, in the order of the table.
pub const SIDES: &[&str] =
    &["ours", "usearch-i8", "usearch-i8+", "usearch-f16", "usearch-f32", "hnsw_rs", "arroy", HNSWLIB];

/// The side that is written in Python.
pub const HNSWLIB: &str = "hnswlib";

/// The named sides; all of them without a name.
pub fn chosen(names: &[&str]) -> anyhow::Result<Vec<&'static str>> {
    if let Some(unknown) = names.iter().find(|name| !SIDES.contains(*name)) {
        bail!("`{unknown}` is no side; there are {}", SIDES.join(", "));
    }
    Ok(SIDES.iter().filter(|side| names.is_empty() || names.contains(side)).copied().collect())
}

/// Builds a side over `moments` and writes it into `folder`.
pub fn build(side: &str, moments: &Vectors, folder: &Utf8Path) -> anyhow::Result<Box<dyn Built>> {
    Ok(match side {
        "ours" => Box::new(ours::build(moments, folder)?),
        "hnsw_rs" => Box::new(hnsw_rs::build(moments, folder)?),
        "arroy" => Box::new(arroy::build(moments, folder)?),
        "usearch-i8" | "usearch-i8+" | "usearch-f16" | "usearch-f32" => {
            Box::new(usearch::build(side, moments, folder)?)
        }
        _ => bail!("`{side}` is no side in Rust"),
    })
}

/// Opens what `build` wrote, mapped into memory where the crate can do that.
pub fn open(side: &str, width: usize, folder: &Utf8Path) -> anyhow::Result<Box<dyn Side>> {
    Ok(match side {
        "ours" => Box::new(ours::open(folder)?),
        "hnsw_rs" => Box::new(hnsw_rs::open(folder)?),
        "arroy" => Box::new(arroy::open(folder)?),
        "usearch-i8" | "usearch-i8+" | "usearch-f16" | "usearch-f32" => Box::new(usearch::open(side, width, folder)?),
        _ => bail!("`{side}` is no side in Rust"),
    })
}

/// Efforts to try, small ones first: candidates of a graph, nodes of arroy's trees.
pub fn efforts(side: &str) -> &'static [usize] {
    match side {
        "arroy" => &[640, 1_280, 1_920, 2_560, 3_840, 5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 81_920],
        _ => &[10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256, 384, 512],
    }
}
