//! The saliency curve of one query, small on disk.

use serde::{Deserialize, Serialize};

/// Points of a curve that are kept: a page shows no more.
const POINTS: usize = 100;

/// One score per clip in the order of the clips, three digits each; longer curves have the means of a hundred stretches. Empty for a
/// query without one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClipScores(pub Vec<f32>);

impl ClipScores {
    /// Of a method's scores; a curve with a number that is none is left out as a whole.
    pub fn of(scores: &[f64]) -> Self {
        if scores.iter().any(|score| !score.is_finite()) {
            return Self::default();
        }
        let count = scores.len().min(POINTS);
        let stretch = |point: usize| &scores[point * scores.len() / count..(point + 1) * scores.len() / count];
        let mean = |stretch: &[f64]| stretch.iter().sum::<f64>() / stretch.len().max(1) as f64;
        Self((0..count).map(|point| three_digits(mean(stretch(point)))).collect())
    }

    /// Whether there is no curve.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From 0 at the lowest to 1 at the highest: methods have scales of their own. A flat curve lies at 0.
    pub fn scaled(&self) -> Vec<f64> {
        let (low, high) = self
            .0
            .iter()
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), score| (low.min(*score), high.max(*score)));
        let range = f64::from(high) - f64::from(low);
        let scale = |score: &f32| if range > 0.0 { (f64::from(*score) - f64::from(low)) / range } else { 0.0 };
        self.0.iter().map(scale).collect()
    }
}

fn three_digits(number: f64) -> f32 {
    if number == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(2 - number.abs().log10().floor() as i32);
    let rounded = (number * scale).round() / scale;
    if rounded.is_finite() { rounded as f32 } else { number as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_rounded_and_long_ones_have_a_hundred_points() {
        assert_eq!(ClipScores::of(&[0.123_456, -12.344, 0.0, 1e-300]).0, [0.123, -12.3, 0.0, 0.0]);
        let long: Vec<f64> = (0..250).map(|n| f64::from(n / 5 % 2)).collect();
        let curve = ClipScores::of(&long).0;
        assert_eq!((curve.len(), &curve[..3]), (100, &[0.0, 0.0, 1.0][..]));
        assert_eq!(ClipScores::of(&[1.0, f64::NAN]), ClipScores::default());
    }

    #[test]
    fn a_scaled_curve_runs_from_0_to_1_and_a_flat_one_nowhere() {
        assert_eq!(ClipScores(vec![-1.0, 3.0, 1.0]).scaled(), [0.0, 1.0, 0.5]);
        assert_eq!(ClipScores(vec![2.0; 3]).scaled(), [0.0; 3]);
        assert!(ClipScores::default().scaled().is_empty());
    }
}
