//! The approximate structure: a navigable small-world graph over the log's moments, derived from it and thrown away at will.
//!
//! Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small World
//! graphs", TPAMI 2020. Differs from the paper: each embedding is held in eight bits a number, which is what makes the graph
//! small and fast; what it proposes is scored again with the numbers of the log. It is safe Rust over mapped arrays: a file
//! that was tampered with gives bad answers, never a read outside it (`ahead.rs` tells the processor what will be read, and
//! reads nothing). `docs/search.md` says what it was measured against.
//!
//! The graph lies in `graph-N.hnsw` beside `graph.json`, which names the file that counts, how much of the log it covers and
//! its checksum. A graph that does not fit is not used.

mod build;
mod file;
mod product;
mod search;

use camino::Utf8Path;
use cuemark_core::Progress;
use half::f16;

use file::GraphMap;
pub(crate) use file::{FILE, GraphFile};
use search::Scratches;

use super::disk::Disk;
use super::snapshot::{Snapshot, widen};
use crate::Result;

/// Links of a moment above the ground level (HNSW's `M`).
const LINKS: usize = 16;
/// Links of a moment on the ground level (HNSW's `Mmax0`): twice as many, since every search ends there and recall hangs on it.
const GROUND_LINKS: usize = 2 * LINKS;
/// Candidates kept while a moment is put in (HNSW's `efConstruction`).
const BUILD_EXPANSION: usize = 96;
/// In place of a link that is not there. No graph numbers so many moments.
const NO_LINK: u32 = u32::MAX;
/// Levels at most: enough for more moments than a log can number.
const LEVELS: usize = 12;
/// Moments whose largest number sets the scale of the eight bits. A larger one elsewhere is clamped, which costs little: what the
/// graph proposes is scored again.
const SCALE_SAMPLE: usize = 4096;

/// How far a product of eight-bit numbers may be off, in errors that are usual: farther one time in some hundreds, or where a number was
/// clamped.
const ERRORS: f32 = 3.0;

/// What a walk proposes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proposed {
    /// The log's number of the moment.
    pub(crate) row: usize,
    /// What its product with the query hardly exceeds.
    pub(crate) at_most: f32,
}

/// A graph that can be searched. Safe to share between threads.
pub(crate) struct Graph {
    pub(crate) file: GraphFile,
    map: GraphMap,
    scratches: Scratches,
}

impl Graph {
    /// Maps the graph of a folder; `None` when there is none that fits the log.
    pub(crate) fn open(disk: &dyn Disk, folder: &Utf8Path, snapshot: &Snapshot) -> Option<Self> {
        let file = GraphFile::read(disk, folder)?;
        if !file.fits(snapshot) {
            return None;
        }
        let map = GraphMap::of(file.checked(disk, folder).ok()?.walked(), snapshot.width())?;
        Some(Self { file, map, scratches: Scratches::default() })
    }

    /// Makes a graph over the whole log, starting from `earlier` where there is one, and puts it in the folder. The steps of
    /// `progress` are moments.
    pub(crate) fn derive(
        disk: &dyn Disk,
        folder: &Utf8Path,
        snapshot: &Snapshot,
        earlier: Option<&Graph>,
        progress: &Progress,
    ) -> Result<()> {
        // One scale for the whole graph, that of the moments which are in eight bits already: products by two scales would not
        // compare.
        let scale = earlier.map_or_else(|| scale(snapshot), |earlier| earlier.file.scale);
        let first = earlier.map_or(0, |earlier| earlier.file.rows);
        let mut builder = build::Builder::new(snapshot.width(), earlier.map(|earlier| earlier.map.view()));
        builder.add(snapshot, first, scale, progress)?;
        file::write(disk, folder, &builder.finish(), snapshot, scale)
    }

    /// Moments that look nearest by the eight-bit numbers, best first: the `expansion` that a walk keeps (HNSW's `ef`).
    pub(crate) fn nearest(&self, query: &[f32], expansion: usize, admits: impl Fn(usize) -> bool) -> Vec<Proposed> {
        // The query is scaled by itself: the walk needs the order of products only.
        let largest = query.iter().fold(0f32, |largest, x| largest.max(x.abs())).max(f32::MIN_POSITIVE);
        let eight: Vec<i16> = query.iter().map(|x| (x * 127.0 / largest).round() as i16).collect();
        let mut scratch = self.scratches.take();
        let found = search::nearest(self.map.view(), &eight, expansion, &mut scratch, admits);
        self.scratches.give_back(scratch);
        let (one, other) = (largest / 127.0, self.file.scale / 127.0);
        // A rounded number is off by 1/√12 of a step on the average, and a product of vectors of length 1 by as much, once for each of both.
        let off = (one * one + other * other).sqrt() / 12f32.sqrt();
        let proposed = |(row, score)| Proposed { row, at_most: score as f32 * one * other + ERRORS * off };
        found.into_iter().map(proposed).collect()
    }

    /// Bytes of memory that it takes when all of it is in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes
    }
}

/// The arrays of a graph, wherever they lie. Moments are numbered by the order in which they were put in.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    width: usize,
    /// Where a search begins, and the highest level; `None` for an empty graph.
    entry: Option<(u32, usize)>,
    /// The log's number of each moment.
    rows: &'a [u32],
    /// [`node_words`] a moment: its eight-bit numbers, then its links on the ground.
    // Side by side: whoever's vector was just read is often the next whose links are, and the processor has fetched them by then.
    nodes: &'a [u32],
    /// Where a moment's upper levels begin in `upper`, in levels; `u32::MAX` when it has none.
    upper_at: &'a [u32],
    /// `LINKS` a level.
    upper: &'a [u32],
}

/// Words of four bytes that the eight-bit numbers of a moment take.
const fn vector_words(width: usize) -> usize {
    width.div_ceil(4)
}

/// Words of four bytes that a moment takes on the ground. For 256 numbers: six cache lines.
const fn node_words(width: usize) -> usize {
    vector_words(width) + GROUND_LINKS
}

impl<'a> View<'a> {
    #[inline(always)]
    fn node(&self, moment: u32) -> (&'a [u32], &'a [u32]) {
        let words = node_words(self.width);
        let first = moment as usize * words;
        self.nodes
            .get(first..first + words)
            .unwrap_or_default()
            .split_at_checked(vector_words(self.width))
            .unwrap_or_default()
    }

    #[inline(always)]
    fn vector(&self, moment: u32) -> &'a [i8] {
        bytemuck::cast_slice(self.node(moment).0).get(..self.width).unwrap_or_default()
    }

    /// Links of a moment on a level, 0 being the ground; [`NO_LINK`] stands behind the last.
    #[inline(always)]
    fn links(&self, moment: u32, level: usize) -> &'a [u32] {
        if level == 0 {
            return self.node(moment).1;
        }
        match self.upper_at.get(moment as usize) {
            Some(&at) if at != u32::MAX => {
                let first = (at as usize + level - 1) * LINKS;
                self.upper.get(first..first + LINKS).unwrap_or_default()
            }
            _ => &[],
        }
    }
}

/// What 127 stands for: the largest number among moments spread over the log.
fn scale(snapshot: &Snapshot) -> f32 {
    let step = (snapshot.rows() / SCALE_SAMPLE).max(1);
    let largest = |row: usize| snapshot.vector(row).iter().fold(0f32, |largest, x| largest.max(x.to_f32().abs()));
    let found = (0..snapshot.rows()).step_by(step).map(largest).fold(0f32, f32::max);
    if found > 0.0 { found } else { 1.0 }
}

fn eight_bits(halves: &[f16], scale: f32, full: &mut [f32], eight: &mut [i8]) {
    widen(halves, full);
    for (eight, full) in eight.iter_mut().zip(full.iter()) {
        *eight = (full * 127.0 / scale).round().clamp(-127.0, 127.0) as i8;
    }
}
