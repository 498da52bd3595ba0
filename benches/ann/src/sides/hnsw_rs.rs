//! `hnsw_rs`: pure Rust; links are read into memory, vectors can stay mapped.

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use hnsw_rs::api::AnnT as _;
use hnsw_rs::prelude::{DistDot, Hnsw, HnswIo, ReloadOptions};

use super::{Built, Side};
use crate::vectors::Vectors;
use crate::{BUILD_EXPANSION, COUNT, LINKS};

/// It wants products of at most 1 exactly, which rounding can miss.
const SHRINK: f32 = 0.9999;
const NAME: &str = "moments";

pub struct HnswRs {
    graph: Hnsw<'static, f32, DistDot>,
    folder: Utf8PathBuf,
}

pub fn build(moments: &Vectors, folder: &Utf8Path) -> anyhow::Result<HnswRs> {
    std::fs::create_dir_all(folder)?;
    let count = moments.rows().len();
    let mut graph = Hnsw::new(LINKS, count, 16, BUILD_EXPANSION, DistDot);
    let shrunk: Vec<Vec<f32>> = moments.rows().map(shrink).collect();
    let numbered: Vec<(&Vec<f32>, usize)> = shrunk.iter().zip(0..).collect();
    graph.parallel_insert(&numbered);
    graph.set_searching_mode(true);
    let mut built = HnswRs { graph, folder: folder.to_owned() };
    built.rewrite()?;
    Ok(built)
}

pub fn open(folder: &Utf8Path) -> anyhow::Result<HnswRs> {
    // A graph borrows from what read it; the process ends with both.
    let io = Box::leak(Box::new(HnswIo::new(folder.as_std_path(), NAME)));
    io.set_options(ReloadOptions::new(true));
    let mut graph = io.load_hnsw::<f32, DistDot>().map_err(|error| anyhow::anyhow!("{error:#}")).context("load")?;
    graph.set_searching_mode(true);
    Ok(HnswRs { graph, folder: folder.to_owned() })
}

fn shrink(row: &[f32]) -> Vec<f32> {
    row.iter().map(|number| number * SHRINK).collect()
}

impl Built for HnswRs {
    fn rewrite(&mut self) -> anyhow::Result<()> {
        self.graph.file_dump(self.folder.as_std_path(), NAME).map_err(|error| anyhow::anyhow!("{error:#}"))?;
        Ok(())
    }
}

impl Side for HnswRs {
    fn nearest(&self, query: &[f32], effort: usize) -> anyhow::Result<Vec<usize>> {
        Ok(self.graph.search(&shrink(query), COUNT, effort).into_iter().map(|near| near.d_id).collect())
    }
}
