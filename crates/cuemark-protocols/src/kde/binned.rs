//! The same density for millions of points: time linear in the points, error stated.
//!
//! Every point is spread over the 4 × 4 nearest nodes of a grid with the weights of cubic interpolation, the grid is
//! blurred with the kernel along one axis and then along the other, and densities are read off by cubic interpolation.
//!
//! With `h` the cell's side in bandwidths: cubic interpolation of a function with fourth derivative at most `D` errs by
//! at most `(9/16)·h⁴·D / 24` along one axis, and a Gaussian's fourth derivative is at most 3 times its peak. Its weights
//! add up to at most 5/4 in absolute value, so two axes err by `1 + 5/4` of that. Spreading errs once; reading off errs
//! by that times `(5/4)²`, what spread weights can add up to. In all `h⁴ · 0.4055`, in peaks of one kernel.

use cuemark_core::NormSpan;
use rayon::prelude::*;

use super::kernel::Kernel;
use crate::{ProtocolError, Result};

/// Kernels are cut where they have fallen to `2^-43` of their peak, and the grid ends that far from the last point.
const MARGIN: f64 = 6.56;
/// What cutting and rounding can add to the error, in peaks of one kernel.
const ROUNDING: f64 = 1e-12;
/// Points are spread in this many parts, whatever the number of cores, so that the sums are the same everywhere.
const PARTS: usize = 4;

/// A Gaussian kernel density on a grid: the approximate form of [`Kde`](super::Kde).
pub struct BinnedKde {
    kernel: Kernel,
    grid: Grid,
    /// Side of a cell, in whitened units.
    cell: f64,
    origin: [f64; 2],
}

/// Values at the nodes of a grid, one row after the other.
struct Grid {
    width: usize,
    values: Vec<f64>,
}

impl BinnedKde {
    /// Fits the density to `points` on a grid of at most `cells` × `cells`: 2048 is a good number for ten million points.
    ///
    /// Takes `8 · cells²` bytes a few times over.
    ///
    /// # Errors
    /// As [`Kde::fit`](super::Kde::fit); when `cells` is not between 16 and 8192.
    pub fn fit(points: &[NormSpan], cells: usize) -> Result<Self> {
        if !(16..=8192).contains(&cells) {
            let problem = "is not between 16 and 8192".to_owned();
            return Err(ProtocolError::Option { option: "cells", value: cells.to_string(), problem });
        }
        let kernel = Kernel::fit(points)?;
        // Whitened, the kernel is round and of one width: one cell fits both axes, and a blur is two passes along one axis each.
        let whitened = |point: &NormSpan| kernel.whiten(point.start(), point.end());
        let (low, high) =
            points.iter().map(whitened).fold(([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]), |(low, high), at| {
                ([low[0].min(at[0]), low[1].min(at[1])], [high[0].max(at[0]), high[1].max(at[1])])
            });
        let extent = [0, 1].map(|axis| high[axis] - low[axis] + 2.0 * MARGIN);
        // Four nodes more than the extent needs, for the two on either side that the cubic weights reach.
        // Square cells by the longer side: the error goes with the fourth power of a cell's side, so the finer side would gain nothing.
        let cell = extent[0].max(extent[1]) / (cells - 4) as f64;
        let nodes = extent.map(|length| ((length / cell).ceil() as usize + 4).min(cells + 1));
        let origin = low.map(|edge| edge - MARGIN - 1.5 * cell);
        let mut density = Self { kernel, grid: Grid::new(nodes), cell, origin };

        // A grid for each part, added up in order: threads that add to one grid would need a lock for every point, and sums in the
        // order of their arrival would differ from run to run.
        let parts: Vec<Grid> = points
            .par_chunks(points.len().div_ceil(PARTS))
            .map(|part| {
                let mut grid = Grid::new(nodes);
                for point in part {
                    if let Some(spot) = density.spot(whitened(point)) {
                        grid.spread(&spot);
                    }
                }
                grid
            })
            .collect();
        for part in parts {
            density.grid.values.iter_mut().zip(part.values).for_each(|(sum, value)| *sum += value);
        }
        let scale = kernel.peak() / points.len() as f64;
        density.grid.blur(cell, scale);
        Ok(density)
    }

    /// The largest difference there can be from the exact density, anywhere in the plane; in the unit of densities.
    pub fn error_bound(&self) -> f64 {
        let bandwidths = self.cell / (0.5 * std::f64::consts::LOG2_E).sqrt();
        (0.4055 * bandwidths.powi(4) + ROUNDING) * self.kernel.peak()
    }

    /// The density at each of `places`, in their order.
    pub fn density(&self, places: &[NormSpan]) -> Vec<f64> {
        places.par_iter().map(|place| self.density_at(*place)).collect()
    }

    /// The density at one place; 0 where no point is near, never negative.
    pub fn density_at(&self, place: NormSpan) -> f64 {
        let spot = self.spot(self.kernel.whiten(place.start(), place.end()));
        // Outside the grid every kernel has been cut to nothing. Inside, cubic weights are negative at the outer nodes, so that
        // next to nothing can come out below 0.
        spot.map_or(0.0, |spot| self.grid.read(&spot).max(0.0))
    }

    /// Where a whitened point falls on the grid; `None` outside it.
    fn spot(&self, at: [f64; 2]) -> Option<Spot> {
        let scaled = [0, 1].map(|axis| (at[axis] - self.origin[axis]) / self.cell);
        let node = scaled.map(f64::floor);
        let limits = [self.grid.width, self.grid.height()];
        // Cubic weights reach one node back and two on.
        let inside = (0..2).all(|axis| node[axis] >= 1.0 && node[axis] + 2.0 < limits[axis] as f64);
        inside.then(|| Spot {
            first: [node[0] as usize - 1, node[1] as usize - 1],
            weights: [cubic_weights(scaled[0] - node[0]), cubic_weights(scaled[1] - node[1])],
        })
    }
}

/// The 4 × 4 nodes around a place: the first column and row, and the weights along each axis.
struct Spot {
    first: [usize; 2],
    weights: [[f64; 4]; 2],
}

/// Weights of the nodes at -1, 0, 1 and 2 for a place at `t` in 0..1.
fn cubic_weights(t: f64) -> [f64; 4] {
    let (before, after, last) = (t + 1.0, t - 1.0, t - 2.0);
    [-t * after * last / 6.0, before * after * last / 2.0, -before * t * last / 2.0, before * t * after / 6.0]
}

impl Grid {
    fn new([width, height]: [usize; 2]) -> Self {
        Self { width, values: vec![0.0; width * height] }
    }

    fn height(&self) -> usize {
        self.values.len() / self.width
    }

    fn spread(&mut self, spot: &Spot) {
        for (row, row_weight) in spot.weights[1].iter().enumerate() {
            let begin = (spot.first[1] + row) * self.width + spot.first[0];
            for (value, weight) in self.values[begin..begin + 4].iter_mut().zip(spot.weights[0]) {
                *value += row_weight * weight;
            }
        }
    }

    fn read(&self, spot: &Spot) -> f64 {
        let row_value = |row: usize| {
            let begin = (spot.first[1] + row) * self.width + spot.first[0];
            self.values[begin..begin + 4].iter().zip(spot.weights[0]).map(|(value, weight)| value * weight).sum::<f64>()
        };
        spot.weights[1].iter().enumerate().map(|(row, weight)| weight * row_value(row)).sum()
    }

    /// Replaces every value by the kernel-weighted sum of its neighbours, times `scale`.
    fn blur(&mut self, cell: f64, scale: f64) {
        let reach = (MARGIN / cell).ceil() as usize;
        let taps: Vec<f64> = (0..=reach).map(|step| (-(step as f64 * cell).powi(2)).exp2()).collect();
        let (width, height) = (self.width, self.height());
        // Along the rows …
        self.values.par_chunks_mut(width).for_each(|row| {
            let before = row.to_vec();
            // The margin holds nothing yet, and much of the grid inside it neither.
            if before.iter().all(|value| *value == 0.0) {
                return;
            }
            // Tap by tap, not node by node: each tap is a whole row moved and added, which the processor does many numbers at a
            // time. The middle tap is 1.
            row.iter_mut().for_each(|value| *value *= scale);
            for (step, tap) in taps.iter().enumerate().take(width).skip(1) {
                add_scaled(&mut row[step..], &before, tap * scale);
                add_scaled(row, &before[step..], tap * scale);
            }
        });
        // … and then across them.
        let before = &self.values;
        let blurred: Vec<Vec<f64>> = (0..height)
            .into_par_iter()
            .map(|row| {
                let (first, last) = (row.saturating_sub(reach), (row + reach).min(height - 1));
                let mut sum = vec![0.0; width];
                for other in first..=last {
                    add_scaled(&mut sum, &before[other * width..(other + 1) * width], taps[row.abs_diff(other)]);
                }
                sum
            })
            .collect();
        self.values = blurred.concat();
    }
}

/// Adds `factor · values` to `sums`, as far as both go.
fn add_scaled(sums: &mut [f64], values: &[f64], factor: f64) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * factor),
    );
}
