//! Sums of kernels over many points at many places, tile by tile.
//!
//! Points and places are put into tiles of near neighbours. A pair of tiles that lie too far apart for the sum to
//! notice is skipped, every other pair is one dense block of kernels that the processor works through in vectors.

use cuemark_core::{Progress, Stopped};
use rayon::prelude::*;

use super::exp2::exp2_neg;

/// Places in one tile: several vector registers full, so that their kernels overlap in the pipeline.
const LANES: usize = 32;
/// Points in one tile: small enough to leave out what is far, large enough for the loop over it to pay.
const TILE: usize = 64;
/// Bits below the value 1 that a sum is allowed to lose by skipping: 2^-43 is 1.1e-13.
const LOST_BITS: f64 = 43.0;
/// A sum below this might notice what was skipped, and is taken again over every point.
const FAINT: f64 = 1.0 / 64.0;

/// Points in coordinates where a kernel is `2^-(distance²)`, in tiles of near neighbours.
pub(super) struct Tiles {
    tiles: Vec<Tile>,
    /// Squared distance beyond which all kernels together stay below the bits that may be lost.
    reach: f64,
}

struct Tile {
    x: Vec<f64>,
    y: Vec<f64>,
    bounds: Bounds,
}

#[derive(Clone, Copy)]
struct Bounds {
    low: [f64; 2],
    high: [f64; 2],
}

impl Tiles {
    pub(super) fn new(points: impl Iterator<Item = [f64; 2]>) -> Self {
        let mut points: Vec<[f64; 2]> = points.collect();
        points.par_sort_unstable_by(by_place);
        put_neighbours_together(&mut points, TILE, |point| *point);
        let tiles = points.par_chunks(TILE).map(|chunk| Tile {
            x: chunk.iter().map(|point| point[0]).collect(),
            y: chunk.iter().map(|point| point[1]).collect(),
            bounds: Bounds::of(chunk),
        });
        Self { tiles: tiles.collect(), reach: (points.len() as f64).log2() + LOST_BITS }
    }

    /// `Σ 2^-(distance²)` over all points, at each of `places`; `progress` counts the distinct ones.
    pub(super) fn kernel_sums(&self, places: &[[f64; 2]], progress: &Progress) -> Result<Vec<f64>, Stopped> {
        // Each distinct place is worked out once, whatever tile it falls into: equal places, equal sums.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.par_sort_unstable_by(|&a, &b| by_place(&places[a], &places[b]).then(a.cmp(&b)));
        let mut distinct: Vec<(usize, [f64; 2])> = Vec::with_capacity(places.len());
        let mut slot_of = vec![0; places.len()];
        for &index in &order {
            if distinct.last().is_none_or(|&(_, last)| last != places[index]) {
                distinct.push((distinct.len(), places[index]));
            }
            slot_of[index] = distinct.len() - 1;
        }
        put_neighbours_together(&mut distinct, LANES, |&(_, place)| place);

        progress.announce(distinct.len());
        let tiles = distinct.par_chunks(LANES).map(|chunk| {
            progress.advance(chunk.len())?;
            Ok(self.sums_of_tile(chunk))
        });
        let sums = tiles.collect::<Result<Vec<[f64; LANES]>, Stopped>>()?;
        let mut by_slot = vec![0.0; distinct.len()];
        for (chunk, sums) in distinct.chunks(LANES).zip(&sums) {
            for (&(slot, _), &sum) in chunk.iter().zip(sums) {
                by_slot[slot] = sum;
            }
        }
        Ok(slot_of.into_iter().map(|slot| by_slot[slot]).collect())
    }

    /// The sums at up to [`LANES`] places; lanes without a place repeat the first.
    fn sums_of_tile(&self, chunk: &[(usize, [f64; 2])]) -> [f64; LANES] {
        let (mut x, mut y) = ([chunk[0].1[0]; LANES], [chunk[0].1[1]; LANES]);
        for (lane, (_, place)) in chunk.iter().enumerate() {
            (x[lane], y[lane]) = (place[0], place[1]);
        }
        let places: Vec<[f64; 2]> = chunk.iter().map(|&(_, place)| place).collect();
        let bounds = Bounds::of(&places);
        let mut sums = [0.0; LANES];
        for tile in self.tiles.iter().filter(|tile| tile.bounds.squared_distance(bounds) < self.reach) {
            add_kernels(&x, &y, tile, &mut sums);
        }
        for (lane, place) in places.iter().enumerate() {
            if sums[lane] < FAINT {
                sums[lane] = self.sum_over_every_point(*place);
            }
        }
        sums
    }

    fn sum_over_every_point(&self, [x, y]: [f64; 2]) -> f64 {
        // The standard library's power reaches down to the smallest number a double can hold.
        let kernel = |px: f64, py: f64| (-((px - x).powi(2) + (py - y).powi(2))).exp2();
        self.tiles.iter().flat_map(|tile| tile.x.iter().zip(&tile.y)).map(|(px, py)| kernel(*px, *py)).sum()
    }
}

/// Adds the kernels of one tile of points to the sums at one tile of places.
fn add_kernels(x: &[f64; LANES], y: &[f64; LANES], tile: &Tile, sums: &mut [f64; LANES]) {
    // Compiled once per instruction set and chosen at run time: AVX-512, AVX2 with FMA, or the plain one.
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut local = *sums;
            for (px, py) in tile.x.iter().zip(&tile.y) {
                for lane in 0..LANES {
                    let (dx, dy) = (x[lane] - px, y[lane] - py);
                    local[lane] += exp2_neg(dx.mul_add(dx, dy * dy));
                }
            }
            *sums = local;
        },
    );
}

impl Bounds {
    fn of(points: &[[f64; 2]]) -> Self {
        let mut bounds = Self { low: [f64::INFINITY; 2], high: [f64::NEG_INFINITY; 2] };
        for [x, y] in points {
            bounds.low = [bounds.low[0].min(*x), bounds.low[1].min(*y)];
            bounds.high = [bounds.high[0].max(*x), bounds.high[1].max(*y)];
        }
        bounds
    }

    /// The squared distance between the nearest places of two boxes, 0 when they touch.
    fn squared_distance(self, other: Self) -> f64 {
        let gap = |axis: usize| (self.low[axis] - other.high[axis]).max(other.low[axis] - self.high[axis]).max(0.0);
        gap(0).powi(2) + gap(1).powi(2)
    }
}

fn by_place(a: &[f64; 2], b: &[f64; 2]) -> std::cmp::Ordering {
    a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
}

/// Re-orders items that are sorted along the first axis so that runs of `tile` of them are compact in both:
/// as many strips along the first axis as tiles in a strip, each sorted along the second.
fn put_neighbours_together<T: Send>(items: &mut [T], tile: usize, place: impl Fn(&T) -> [f64; 2] + Sync) {
    let tiles = items.len().div_ceil(tile);
    let tiles_per_strip = (tiles as f64).sqrt().ceil().max(1.0) as usize;
    items.par_chunks_mut(tiles_per_strip * tile).for_each(|strip| {
        strip.sort_unstable_by(|a, b| place(a)[1].total_cmp(&place(b)[1]).then(place(a)[0].total_cmp(&place(b)[0])));
    });
}
