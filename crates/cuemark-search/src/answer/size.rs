//! One curve for indexes of any size.
//!
//! The best of many wrong moments scores higher than the best of few, so the same score means less in a large index than in a
//! small one, and what stands out among many stands out more sharply. In the logarithm of the odds that is a term that falls with the
//! logarithm of the number of moments that were searched and a slope that rises with it; both are fitted on the same questions asked
//! of ever fewer videos.

use super::calibration::fit_calibration;
use super::{Calibration, logistic};

/// An answer whose truth is known, found among so many moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizedAnswer {
    /// By how many standard deviations it lies above the background.
    pub z: f64,
    /// Its score.
    pub score: f64,
    /// Moments that were searched.
    pub moments: usize,
    /// Whether it is right.
    pub right: bool,
}

impl Calibration {
    /// The same curve where so many moments are searched.
    #[must_use]
    pub(crate) fn among(&self, moments: usize) -> Self {
        let size = logarithm(moments);
        Self {
            by_score: self.by_score + self.score_by_size * size,
            offset: self.offset + self.by_size * size,
            by_size: 0.0,
            score_by_size: 0.0,
            ..*self
        }
    }

    /// Whether it is another curve in an index of another size.
    pub(crate) fn hangs_on_size(&self) -> bool {
        self.by_size != 0.0 || self.score_by_size != 0.0
    }
}

fn logarithm(moments: usize) -> f64 {
    (moments.max(1) as f64).ln()
}

/// Fits a curve over how surprising an answer is, its score and the moments that were searched. `None` when there are too few
/// answers of either kind, or right ones are not the more surprising ones.
pub fn fit_at_sizes(judged: &[SizedAnswer]) -> Option<Calibration> {
    let plain: Vec<(f64, bool)> = judged.iter().map(|one| (one.z, one.right)).collect();
    let start = fit_calibration(&plain)?;
    let read = |one: &SizedAnswer| {
        let size = logarithm(one.moments);
        ([one.z, one.score, size, one.score * size, 1.0], one.right)
    };
    let inputs: Vec<_> = judged.iter().map(read).collect();
    let weights = logistic::fit([start.slope, 0.0, 0.0, 0.0, start.offset], &inputs, 100, solve)?;
    let [mut slope, mut by_score, mut by_size, mut score_by_size, mut offset] = weights;
    if slope < 0.0 {
        // Beside its score it says nothing that an answer is surprising: a curve that fell with it would be one of chance.
        let inputs: Vec<_> = inputs.iter().map(|([_, rest @ ..], right)| (*rest, *right)).collect();
        slope = 0.0;
        [by_score, by_size, score_by_size, offset] =
            logistic::fit([by_score, by_size, score_by_size, offset], &inputs, 100, solve)?;
    }
    let fitted = Calibration { slope, by_score, by_size, score_by_size, offset, ..start };
    let finite = [by_size, score_by_size, offset].iter().all(|weight| weight.is_finite());
    // It rises everywhere if it does in the smallest and in the largest index that it was fitted on.
    let rises = |moments: Option<usize>| moments.is_some_and(|moments| fitted.among(moments).by_score > 0.0);
    let sizes = || judged.iter().map(|one| one.moments);
    (finite && slope >= 0.0 && rises(sizes().min()) && rises(sizes().max())).then_some(fitted)
}

/// The solution of as many equations by elimination; `None` where there is none.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot = (column..N).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let lead = matrix[column];
        if !lead[column].is_finite() || lead[column] == 0.0 {
            return None;
        }
        for row in column + 1..N {
            let factor = matrix[row][column] / lead[column];
            matrix[row].iter_mut().zip(lead).for_each(|(value, above)| *value -= factor * above);
            right[row] -= factor * right[column];
        }
    }
    let mut found = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| matrix[row][column] * found[column]).sum();
        found[row] = (right[row] - known) / matrix[row][row];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    #[test]
    fn a_known_curve_over_sizes_is_found_again_and_says_less_of_a_larger_index() {
        let known = Calibration {
            slope: 0.5,
            by_score: 2.0,
            by_size: -1.3,
            score_by_size: 0.6,
            offset: 2.0,
            highest: None,
            ..Calibration::default()
        };
        let mut rng = Rng::new(5);
        let judged: Vec<SizedAnswer> = (0..200_000)
            .map(|_| {
                let (z, score) = (rng.between(-1.0, 6.0), rng.between(0.0, 1.0));
                let moments = [8_000, 30_000, 250_000][rng.below(3)];
                let right = rng.chance(known.among(moments).probability(z, score));
                SizedAnswer { z, score, moments, right }
            })
            .collect();
        let found = fit_at_sizes(&judged).unwrap();
        for moments in [8_000, 30_000, 250_000] {
            let (found, known) = (found.among(moments), known.among(moments));
            for (z, score) in [(0.0, 0.9), (3.0, 0.2), (3.0, 0.8), (5.5, 0.5), (6.0, 1.0)] {
                let apart = found.probability(z, score) - known.probability(z, score);
                assert!(apart.abs() < 0.03, "{moments}, {z}, {score}: {apart} {found:?}");
            }
        }
        assert!(found.among(250_000).by_score > found.among(8_000).by_score + 1.0, "sharper among many");
        assert!(found.among(250_000).probability(6.0, 0.9) < found.among(8_000).probability(6.0, 0.9) - 0.1);
        assert_eq!(found.among(9), found.among(9).among(400), "a size is counted once");
        assert_eq!(fit_at_sizes(&[]), None);
    }

    #[test]
    fn a_curve_never_falls_with_surprise() {
        // Of two answers with one score the less surprising is right more often: beside the score surprise misleads.
        let known = Calibration {
            slope: -0.4,
            by_score: 12.0,
            by_size: -0.5,
            offset: 1.0,
            highest: None,
            ..Calibration::default()
        };
        let mut rng = Rng::new(6);
        let judged: Vec<SizedAnswer> = (0..40_000)
            .map(|_| {
                let score = rng.between(0.0, 1.0);
                let z = 8.0 * score + rng.between(-1.0, 1.0);
                let moments = [8_000, 250_000][rng.below(2)];
                let right = rng.chance(known.among(moments).probability(z, score));
                SizedAnswer { z, score, moments, right }
            })
            .collect();
        let found = fit_at_sizes(&judged).unwrap();
        assert_eq!(found.slope, 0.0);
        // What surprise takes away by way of the score is in the score's own slope: 12 - 0.4 · 8.
        let at = found.among(8_000);
        assert!((at.by_score - 8.8).abs() < 0.4 && (at.offset - known.among(8_000).offset).abs() < 0.3, "{found:?}");
    }

    #[test]
    fn a_curve_without_sizes_is_the_same_everywhere_and_written_as_before() {
        let plain = Calibration::default();
        assert_eq!(plain.among(10), plain.among(1_000_000));
        assert!(!plain.hangs_on_size() && !serde_json::to_string(&plain).unwrap().contains("by_size"));
    }
}
