//! How far apart the moments of two splits lie: the energy distance, and whether chance explains it.

use cuemark_core::{NormSpan, Progress, Rng, Split};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use crate::Result;
use crate::pairs::pairs;

/// Moments that are compared from each split, at most.
const MOMENTS: usize = 400;
/// Random divisions that the one at hand is compared with.
const PERMUTATIONS: usize = 999;

/// The energy distance between two splits' moments in the plane of normalised start and end.
///
/// `2·E|X-Y| - E|X-X'| - E|Y-Y'|`: 0 when both are one distribution. Taken over one moment from each of at most 400 videos
/// per split, drawn at random, so that moments are independent of one another and the figure takes no time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitDistance {
    /// One split.
    pub left: String,
    /// The other.
    pub right: String,
    /// The distance, in fractions of a video.
    pub energy: f64,
    /// How often a random division of the same moments is at least as far apart: `(1 + n) / (1 + 999)`.
    pub p_value: f64,
    /// Moments compared from the one split.
    pub left_moments: usize,
    /// Moments compared from the other.
    pub right_moments: usize,
}

/// The distance between every two splits that have moments.
pub(super) fn distances(splits: &[Split], seed: u64, progress: &Progress) -> Result<Vec<SplitDistance>> {
    let mut samples = Vec::new();
    for split in splits {
        let sample = one_moment_a_video(split, seed)?;
        if !sample.is_empty() {
            samples.push((split.name.as_str(), sample));
        }
    }
    let mut distances = Vec::new();
    for (i, (left, a)) in samples.iter().enumerate() {
        for (right, b) in &samples[i + 1..] {
            progress.announce(1);
            progress.advance(1)?;
            let (energy, p_value) = energy_test(a, b, seed);
            let (left, right) = ((*left).to_owned(), (*right).to_owned());
            distances.push(SplitDistance {
                left,
                right,
                energy,
                p_value,
                left_moments: a.len(),
                right_moments: b.len(),
            });
        }
    }
    Ok(distances)
}

fn one_moment_a_video(split: &Split, seed: u64) -> Result<Vec<NormSpan>> {
    let mut by_video: IndexMap<_, Vec<NormSpan>> = IndexMap::new();
    for pair in pairs(&split.queries)? {
        by_video.entry(pair.truth.video.as_ref().map(|video| &video.id)).or_default().push(pair.span);
    }
    let mut rng = Rng::stream(seed, &format!("moments of {}", split.name));
    let mut moments: Vec<NormSpan> = by_video.values().filter_map(|spans| rng.pick(spans).copied()).collect();
    rng.shuffle(&mut moments);
    moments.truncate(MOMENTS);
    Ok(moments)
}

/// The energy distance of `a` and `b` and its p-value under random divisions of both together.
fn energy_test(a: &[NormSpan], b: &[NormSpan], seed: u64) -> (f64, f64) {
    let all: Vec<NormSpan> = a.iter().chain(b).copied().collect();
    let distance = |p: &NormSpan, q: &NormSpan| (p.start() - q.start()).hypot(p.end() - q.end());
    let rows: Vec<Vec<f64>> = all.iter().map(|p| all.iter().map(|q| distance(p, q)).collect()).collect();
    let from: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
    let total: f64 = from.iter().sum();
    let (m, n) = (a.len() as f64, b.len() as f64);
    // Sums within one side of a division give the other two, so only those are added up anew.
    let energy = |side: &[usize]| {
        let within: f64 = side.iter().map(|i| side.iter().map(|j| rows[*i][*j]).sum::<f64>()).sum();
        let across = side.iter().map(|i| from[*i]).sum::<f64>() - within;
        let within_other = total - 2.0 * across - within;
        2.0 * across / (m * n) - within / (m * m) - within_other / (n * n)
    };
    let order: Vec<usize> = (0..all.len()).collect();
    let observed = energy(&order[..a.len()]);
    let as_far = (0..PERMUTATIONS).into_par_iter().filter(|n| {
        let mut shuffled = order.clone();
        Rng::stream(seed, &format!("division {n}")).shuffle(&mut shuffled);
        // Equal divisions sum in another order; rounding must not make them differ.
        energy(&shuffled[..a.len()]) >= observed - 1e-12
    });
    (observed.max(0.0), (1 + as_far.count()) as f64 / (1 + PERMUTATIONS) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(n: usize, shift: f64, seed: u64) -> Vec<NormSpan> {
        let mut rng = Rng::new(seed);
        let mut span = || {
            let start = shift + 0.4 * rng.uniform();
            NormSpan::new(start, start + 0.1 + 0.1 * rng.uniform()).unwrap()
        };
        (0..n).map(|_| span()).collect()
    }

    #[test]
    fn two_points_are_twice_their_distance_apart() {
        let (a, b) = (NormSpan::new(0.0, 0.3).unwrap(), NormSpan::new(0.3, 0.7).unwrap());
        let (energy, p_value) = energy_test(&[a], &[b], 0);
        assert!((energy - 2.0 * 0.5).abs() < 1e-12, "{energy}");
        assert_eq!(p_value, 1.0, "both divisions of two points are alike");
    }

    #[test]
    fn one_distribution_gives_even_p_values_and_two_give_tiny_ones() {
        let p_values: Vec<f64> =
            (0..40).map(|n| energy_test(&cloud(40, 0.1, 2 * n), &cloud(50, 0.1, 2 * n + 1), n).1).collect();
        let small = p_values.iter().filter(|p| **p < 0.25).count();
        assert!((3..=18).contains(&small), "about ten of forty are below a quarter: {small}");
        assert!(energy_test(&cloud(40, 0.1, 1), &cloud(50, 0.3, 2), 0).1 < 0.005);
    }
}
