//! Where moments lie: a Gaussian kernel density over their normalised start and end.
//!
//! Bandwidth after Scott, full covariance; the values are those of SciPy's `gaussian_kde`. [`Kde`] is exact and costs
//! a kernel per pair of points, [`BinnedKde`] costs time linear in the points and states its largest error.

mod binned;
mod exp2;
mod kernel;
mod tiles;

pub use binned::BinnedKde;

use cuemark_core::{NormSpan, Progress, Rng, Stopped};

use crate::Result;
use kernel::Kernel;
use tiles::Tiles;

/// Steps from 0 to 1 along each axis of the grid on which [`Kde::mode`] looks.
///
/// The model card speaks of a 100 × 100 grid, but the mode it reports for Charades-CD, (0.02, 0.22), is the densest node
/// in steps of 0.02; in steps of 0.01 it is (0.03, 0.22). We keep the grid that gives the reported figures.
const MODE_STEPS: usize = 50;
/// A drawn span shorter than this fraction of the video is drawn again …
const SHORTEST_DRAW: f64 = 1e-3;
/// … at most this often.
const REDRAWS: usize = 10;

/// An exact Gaussian kernel density over the plane of normalised starts and ends.
///
/// `p(x) = 1/n · Σ N(x; xᵢ, H)` with `H = n^(-1/3) · C` and `C` the unbiased covariance of the points. Mass leaks out
/// of the triangle `0 <= start < end <= 1`; that is accepted.
pub struct Kde {
    kernel: Kernel,
    points: Vec<NormSpan>,
    tiles: Tiles,
}

impl Kde {
    /// Fits the density to `points`, which are taken as they are: clip them first where clipped ones are wanted.
    ///
    /// A covariance whose smaller eigenvalue is below 1e-6 (one point, or all on a line) gets 1e-6 added to its diagonal.
    ///
    /// # Errors
    /// When there is no point, or their spread overflows.
    pub fn fit(points: &[NormSpan]) -> Result<Self> {
        let kernel = Kernel::fit(points)?;
        let tiles = Tiles::new(points.iter().map(|point| kernel.whiten(point.start(), point.end())));
        Ok(Self { kernel, points: points.to_vec(), tiles })
    }

    /// The points it was fitted to, in the order given.
    pub fn points(&self) -> &[NormSpan] {
        &self.points
    }

    /// The density at each of `places`, in their order, on all cores.
    ///
    /// Within 1e-10 of the true sum, relative to its value; equal places have equal densities to the last bit.
    /// Takes `points × places` kernels at most, fewer where most pairs are too far apart to matter. `progress` counts
    /// places, equal ones once.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn density(&self, places: &[NormSpan], progress: &Progress) -> Result<Vec<f64>, Stopped> {
        self.sums_in_plane(places.iter().map(|place| [place.start(), place.end()]), progress)
    }

    /// As [`Kde::density`], anywhere in the plane: a start may come after its end.
    fn density_in_plane(&self, places: impl Iterator<Item = [f64; 2]>) -> Vec<f64> {
        // Only who holds a progress can stop it, and this one is held here alone.
        self.sums_in_plane(places, &Progress::new()).unwrap_or_default()
    }

    fn sums_in_plane(&self, places: impl Iterator<Item = [f64; 2]>, progress: &Progress) -> Result<Vec<f64>, Stopped> {
        let whitened: Vec<[f64; 2]> = places.map(|[start, end]| self.kernel.whiten(start, end)).collect();
        let mut sums = self.tiles.kernel_sums(&whitened, progress)?;
        let scale = self.kernel.peak() / self.points.len() as f64;
        sums.iter_mut().for_each(|sum| *sum *= scale);
        Ok(sums)
    }

    /// One draw: a point chosen evenly, moved by the kernel, clipped to the video, start and end put in order.
    ///
    /// Draws shorter than a thousandth of the video are repeated up to ten times; the last one stands.
    pub fn sample(&self, rng: &mut Rng) -> NormSpan {
        let mut drawn = self.draw(rng);
        for _ in 0..REDRAWS {
            if drawn.len() >= SHORTEST_DRAW {
                break;
            }
            drawn = self.draw(rng);
        }
        drawn
    }

    fn draw(&self, rng: &mut Rng) -> NormSpan {
        let index = rng.below(self.points.len());
        let normal = [rng.normal(), rng.normal()];
        let [start, end] = self.displaced(index, normal);
        NormSpan::new(start, end).map_or(self.points[index], NormSpan::clipped)
    }

    /// A point moved by the kernel's Cholesky factor times a pair of standard normal numbers.
    fn displaced(&self, index: usize, normal: [f64; 2]) -> [f64; 2] {
        let point = self.points[index];
        let [dx, dy] = self.kernel.colour(normal);
        [point.start() + dx, point.end() + dy]
    }

    /// The densest span among those that start and end at a multiple of 1/50 from 0 to 1, `start < end`.
    ///
    /// On a tie the earliest start wins, then the earliest end.
    pub fn mode(&self) -> NormSpan {
        let place = |step: usize| step as f64 / MODE_STEPS as f64;
        let grid: Vec<NormSpan> = (0..MODE_STEPS)
            .flat_map(|start| (start + 1..=MODE_STEPS).filter_map(move |end| NormSpan::new(place(start), place(end))))
            .collect();
        let densities = self.density_in_plane(grid.iter().map(|place| [place.start(), place.end()]));
        let densest = (1..grid.len()).fold(0, |best, i| if densities[i] > densities[best] { i } else { best });
        grid[densest]
    }
}

#[cfg(test)]
mod tests;
