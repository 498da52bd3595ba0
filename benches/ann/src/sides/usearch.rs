//! `usearch`: C++ behind `cxx`; a file is mapped whole and walked where it lies.
//!
//! `usearch-i8+` scores the best forty again with full numbers from a file of ours, as our engine does with its log.

use anyhow::bail;
use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::{Built, Side};
use crate::vectors::{Vectors, product};
use crate::{BUILD_EXPANSION, COUNT, LINKS};

/// The file of full numbers.
const FULL: &str = "moments.f32";
/// Candidates that are scored again.
const AGAIN: usize = 40;

pub struct USearch {
    index: Index,
    path: Utf8PathBuf,
    width: usize,
    /// Full numbers, where the best are scored again.
    full: Option<memmap2::Mmap>,
}

fn new(side: &str, width: usize, folder: &Utf8Path) -> anyhow::Result<USearch> {
    let quantization = match side {
        "usearch-i8" | "usearch-i8+" => ScalarKind::I8,
        "usearch-f16" => ScalarKind::F16,
        "usearch-f32" => ScalarKind::F32,
        _ => bail!("`{side}` is no kind of usearch"),
    };
    let options = IndexOptions {
        dimensions: width,
        metric: MetricKind::IP,
        quantization,
        connectivity: LINKS,
        expansion_add: BUILD_EXPANSION,
        expansion_search: 64,
        multi: false,
    };
    Ok(USearch { index: Index::new(&options)?, path: folder.join("moments.usearch"), width, full: None })
}

pub fn build(side: &str, moments: &Vectors, folder: &Utf8Path) -> anyhow::Result<USearch> {
    std::fs::create_dir_all(folder)?;
    let mut built = new(side, moments.width, folder)?;
    built.index.reserve(moments.rows().len())?;
    let rows: Vec<(u64, &[f32])> = (0u64..).zip(moments.rows()).collect();
    rows.par_iter().try_for_each(|(row, numbers)| built.index.add::<f32>(*row, numbers))?;
    built.rewrite()?;
    if side == "usearch-i8+" {
        let bytes: Vec<u8> = moments.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(folder.join(FULL), bytes)?;
    }
    Ok(built)
}

pub fn open(side: &str, width: usize, folder: &Utf8Path) -> anyhow::Result<USearch> {
    let mut opened = new(side, width, folder)?;
    opened.index.view(opened.path.as_str())?;
    if side == "usearch-i8+" {
        // SAFETY: nobody writes this comparison's files while they are mapped.
        opened.full = Some(unsafe { memmap2::Mmap::map(&std::fs::File::open(folder.join(FULL))?)? });
    }
    Ok(opened)
}

impl Built for USearch {
    fn rewrite(&mut self) -> anyhow::Result<()> {
        Ok(self.index.save(self.path.as_str())?)
    }
}

impl Side for USearch {
    fn nearest(&self, query: &[f32], effort: usize) -> anyhow::Result<Vec<usize>> {
        if self.index.expansion_search() != effort {
            self.index.change_expansion_search(effort);
        }
        let Some(full) = &self.full else {
            return Ok(self.index.search::<f32>(query, COUNT)?.keys.into_iter().map(|row| row as usize).collect());
        };
        let again = effort.clamp(COUNT, AGAIN);
        let mut scored: Vec<(f32, usize)> = Vec::with_capacity(again);
        let mut numbers = vec![0f32; self.width];
        for row in self.index.search::<f32>(query, again)?.keys {
            let at = 4 * self.width * row as usize;
            let Some(bytes) = full.get(at..at + 4 * self.width) else { continue };
            for (number, four) in numbers.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *number = f32::from_le_bytes(*four);
            }
            scored.push((product(query, &numbers), row as usize));
        }
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        Ok(scored.into_iter().take(COUNT).map(|(_, row)| row).collect())
    }
}
