//! From a score to a probability.

use serde::{Deserialize, Serialize};

use super::{Question, logistic};

/// The probability that an answer is right is `1 / (1 + exp(-(slope * z + by_score * score + offset)))`, where `z` says by how
/// many standard deviations the answer's score lies above those of the question against a sample of the whole index.
///
/// So the same cosine may mean much for one question and nothing for another: a question that everything matches a little
/// has no good answer. But an encoder that was trained to tell right from nearly right says much by the cosine itself: where
/// nothing in the index is right, the best answer still stands out (the right actor does something else) and yet scores less than
/// a right one would.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// How fast it rises.
    pub slope: f64,
    /// How fast it rises with the score itself; 0 for encoders whose scores mean little across questions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_score: f64,
    /// How fast it rises with the logarithm of the moments that are searched, less than 0 where a larger index is less sure of the same
    /// score; 0 where it was fitted at one size.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_size: f64,
    /// How much faster it rises with the score for every e-fold of moments: among many a high score is seldom chance, and a middling one
    /// often is. 0 where it was fitted at one size.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub score_by_size: f64,
    /// Where it begins.
    pub offset: f64,
    /// Answers with known truth that it was fitted on; 0 when it is a guess.
    pub answers: usize,
    /// The largest `z` that it was fitted on: what lies beyond is no more probable, since nobody has seen it. `None` sets no bound.
    #[serde(default)]
    pub highest: Option<f64>,
    /// An answer is not good enough, whatever its probability, when it stands lower than this (the share of what the background's
    /// best scores, less what chance does among many films): chosen on questions that something answers. `None` leaves it to the least probability that a question asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
    /// Whether the cut is a share of heights above what a question scores on anything in the index, not of scores as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub above_usual: bool,
    /// Whether questions, moments and names are compared without what all names have in common.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_common: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Default for Calibration {
    /// A guess for encoders without validation queries: even odds at four standard deviations, and never surer than 88 %.
    fn default() -> Self {
        Self {
            slope: 2.0,
            by_score: 0.0,
            by_size: 0.0,
            score_by_size: 0.0,
            offset: -8.0,
            answers: 0,
            highest: Some(5.0),
            cut: None,
            above_usual: false,
            without_common: false,
        }
    }
}

impl Calibration {
    /// The probability that belongs to `z` standard deviations and that score.
    pub fn probability(&self, z: f64, score: f64) -> f64 {
        // Beyond what was seen the curve is a guess, and a logistic one would call it certainty.
        let z = self.highest.map_or(z, |highest| z.min(highest));
        1.0 / (1.0 + (-(self.slope * z + self.by_score * score + self.offset)).exp())
    }

    /// Whether it was fitted on answers with known truth: what it says may be called a probability.
    pub fn is_fitted(&self) -> bool {
        self.answers > 0
    }

    /// The least probability that is held against answers where a question asks for `asked`.
    ///
    /// What a curve says that nobody fitted is no reason to refuse an answer that the cut admits; it is one for somebody who asks
    /// for more than usual.
    pub(crate) fn least(&self, asked: f64) -> f64 {
        if self.leaves_it_to_the_cut(asked) { 0.0 } else { asked }
    }

    /// Whether the cut alone says which answers are good enough where a question asks for a least probability of `asked`.
    pub(crate) fn leaves_it_to_the_cut(&self, asked: f64) -> bool {
        !self.is_fitted() && self.cut.is_some() && asked <= Question::LEAST
    }

    /// Whether an answer that scores this share of the background's best may be good enough; everything may where there is no cut.
    pub(crate) fn admits(&self, share: f64) -> bool {
        self.cut.is_none_or(|cut| share >= cut)
    }
}

/// Fits a calibration to answers: how surprising each was, and whether it was right.
///
/// Logistic regression by Newton's method with the two targets drawn in a little, as Platt does, so that a sample without a
/// mistake does not give certainty. `None` when there are too few answers of either kind, or right ones are not the more
/// surprising ones.
pub fn fit_calibration(judged: &[(f64, bool)]) -> Option<Calibration> {
    let right = judged.iter().filter(|(_, right)| *right).count();
    let wrong = judged.len() - right;
    if right < 10 || wrong < 10 || judged.iter().any(|(z, _)| !z.is_finite()) {
        return None;
    }
    let high = (right as f64 + 1.0) / (right as f64 + 2.0);
    let low = 1.0 / (wrong as f64 + 2.0);
    // The best flat curve: from there the slope has only to find its sign and size.
    let (mut slope, mut offset) = (0.0f64, ((right as f64 + 1.0) / (wrong as f64 + 1.0)).ln());
    for _ in 0..100 {
        // Not from 0: where every answer is certain all weights vanish, and there would be nothing to divide by.
        let (mut gradient, mut curve) = ([0.0; 2], [1e-9, 0.0, 1e-9]);
        for (z, right) in judged {
            let p = 1.0 / (1.0 + (-(slope * z + offset)).exp());
            let error = p - if *right { high } else { low };
            let weight = p * (1.0 - p);
            gradient[0] += error * z;
            gradient[1] += error;
            curve[0] += weight * z * z;
            curve[1] += weight * z;
            curve[2] += weight;
        }
        let determinant = curve[0] * curve[2] - curve[1] * curve[1];
        if determinant.is_nan() || determinant == 0.0 {
            return None;
        }
        let step = [
            (curve[2] * gradient[0] - curve[1] * gradient[1]) / determinant,
            (curve[0] * gradient[1] - curve[1] * gradient[0]) / determinant,
        ];
        // A long first step can overshoot where the curve is flat.
        let shorten = (2.0 / step[0].abs().max(step[1].abs())).min(1.0);
        slope -= shorten * step[0];
        offset -= shorten * step[1];
        if step[0].abs() + step[1].abs() < 1e-9 {
            break;
        }
    }
    // A falling curve means that the scores of these answers say nothing; to serve it would turn the ranking upside down.
    (slope.is_finite() && offset.is_finite() && slope > 0.0).then_some(Calibration {
        slope,
        by_score: 0.0,
        by_size: 0.0,
        score_by_size: 0.0,
        offset,
        answers: judged.len(),
        highest: judged.iter().map(|(z, _)| *z).reduce(f64::max),
        cut: None,
        above_usual: false,
        without_common: false,
    })
}

/// An answer whose truth is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JudgedAnswer {
    /// By how many standard deviations it lies above the background.
    pub(crate) z: f64,
    /// Its score.
    pub(crate) score: f64,
    /// Whether it is right.
    pub(crate) right: bool,
}

/// As [`fit_calibration`], with the score itself beside how surprising it is. A curve on which right answers would be less
/// probable the higher they score is none: then the plain one is fitted.
pub(crate) fn fit_with_scores(judged: &[JudgedAnswer]) -> Option<Calibration> {
    let plain: Vec<(f64, bool)> = judged.iter().map(|one| (one.z, one.right)).collect();
    let start = fit_calibration(&plain)?;
    let inputs: Vec<_> = judged.iter().map(|one| ([one.z, one.score, 1.0], one.right)).collect();
    let weights = logistic::fit([start.slope, 0.0, start.offset], &inputs, 50, solve)?;
    let [slope, by_score, offset] = weights;
    let rises = weights.iter().all(|weight| weight.is_finite()) && slope >= 0.0 && by_score > 0.0;
    Some(if rises { Calibration { slope, by_score, offset, ..start } } else { start })
}

/// The solution of three equations; `None` where there is none.
fn solve(matrix: [[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |m: &[[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = determinant(&matrix);
    if !whole.is_finite() || whole == 0.0 {
        return None;
    }
    Some(std::array::from_fn(|column| {
        let mut replaced = matrix;
        (0..3).for_each(|row| replaced[row][column] = right[row]);
        determinant(&replaced) / whole
    }))
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    #[test]
    fn a_known_curve_is_found_again() {
        let known = Calibration { slope: 1.5, offset: -4.0, highest: None, ..Calibration::default() };
        let mut rng = Rng::new(3);
        let judged: Vec<(f64, bool)> = (0..20_000)
            .map(|_| {
                let z = rng.between(-1.0, 6.0);
                (z, rng.chance(known.probability(z, 0.0)))
            })
            .collect();
        let found = fit_calibration(&judged).unwrap();
        assert!((found.slope - 1.5).abs() < 0.1 && (found.offset + 4.0).abs() < 0.25, "{found:?}");
    }

    #[test]
    fn a_known_curve_over_two_things_is_found_again_and_one_that_falls_is_not_taken() {
        let known = Calibration { slope: 0.5, by_score: 8.0, offset: -6.0, highest: None, ..Calibration::default() };
        let mut rng = Rng::new(5);
        let judged: Vec<JudgedAnswer> = (0..40_000)
            .map(|_| {
                let (z, score) = (rng.between(-1.0, 6.0), rng.between(0.0, 1.0));
                JudgedAnswer { z, score, right: rng.chance(known.probability(z, score)) }
            })
            .collect();
        let found = fit_with_scores(&judged).unwrap();
        assert!((found.slope - 0.5).abs() < 0.05 && (found.by_score - 8.0).abs() < 0.4, "{found:?}");
        assert!((found.offset + 6.0).abs() < 0.3, "{found:?}");
        let falling: Vec<JudgedAnswer> =
            judged.iter().map(|one| JudgedAnswer { score: 1.0 - one.score, ..*one }).collect();
        assert_eq!(fit_with_scores(&falling).unwrap().by_score, 0.0);
        assert_eq!(fit_with_scores(&[]), None);
    }

    #[test]
    fn a_cut_admits_what_reaches_it_and_none_admits_everything() {
        let guess = Calibration::default();
        assert!(guess.admits(-100.0) && !guess.is_fitted());
        let cut = Calibration { cut: Some(1.5), answers: 7, ..guess };
        assert!(cut.admits(1.5) && !cut.admits(1.49) && cut.is_fitted());
        let text = serde_json::to_string(&guess).unwrap();
        assert!(!text.contains("cut"), "an index without one is read by programs that know none: {text}");
        assert_eq!(serde_json::from_str::<Calibration>(&serde_json::to_string(&cut).unwrap()).unwrap(), cut);
    }

    #[test]
    fn a_curve_that_nobody_fitted_refuses_nothing_that_the_cut_admits_unless_more_is_asked_for() {
        let guess = Calibration { cut: Some(0.5), ..Calibration::default() };
        assert_eq!((guess.least(0.1), guess.least(0.3)), (0.0, 0.3));
        assert_eq!(Calibration { cut: None, ..guess }.least(0.1), 0.1, "something must decide");
        assert_eq!(Calibration { answers: 40, ..guess }.least(0.1), 0.1);
    }

    #[test]
    fn nothing_is_fitted_to_too_little_or_to_nonsense() {
        assert_eq!(fit_calibration(&[]), None);
        assert_eq!(fit_calibration(&[(1.0, true); 50]), None);
        let backwards: Vec<(f64, bool)> = (0..100).map(|n| (f64::from(n), n < 50)).collect();
        assert_eq!(fit_calibration(&backwards), None);
    }

    #[test]
    fn answers_told_apart_without_a_mistake_do_not_give_certainty() {
        let judged: Vec<(f64, bool)> = (0..100).map(|n| (f64::from(n) / 10.0, n >= 50)).collect();
        let found = fit_calibration(&judged).unwrap();
        assert!(found.probability(10.0, 0.0) < 1.0 && found.probability(10.0, 0.0) > 0.9, "{found:?}");
        assert_eq!(found.probability(1000.0, 0.0), found.probability(9.9, 0.0), "nobody has seen more");
    }
}
