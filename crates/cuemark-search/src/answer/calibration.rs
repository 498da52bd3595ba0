//! From a score to a probability.

use serde::{Deserialize, Serialize};

/// The probability that an answer is right is `1 / (1 + exp(-(slope * z + offset)))`, where `z` says by how many standard
/// deviations the answer's score lies above those of the question against a sample of the whole index.
///
/// So the same cosine may mean much for one question and nothing for another: a question that everything matches a little
/// has no good answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// How fast it rises.
    pub slope: f64,
    /// Where it begins.
    pub offset: f64,
    /// Answers with known truth that it was fitted on; 0 when it is a guess.
    pub answers: usize,
    /// The largest `z` that it was fitted on: what lies beyond is no more probable, since nobody has seen it. `None` sets no bound.
    #[serde(default)]
    pub highest: Option<f64>,
    /// An answer is not good enough, whatever its probability, when it scores less than this share of what the background's best
    /// does: chosen on questions that something answers. `None` leaves it to the least probability that a question asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
}

impl Default for Calibration {
    /// A guess for encoders without validation queries: even odds at four standard deviations, and never surer than 88 %.
    fn default() -> Self {
        Self { slope: 2.0, offset: -8.0, answers: 0, highest: Some(5.0), cut: None }
    }
}

impl Calibration {
    /// The probability that belongs to `z` standard deviations.
    pub fn probability(&self, z: f64) -> f64 {
        let z = self.highest.map_or(z, |highest| z.min(highest));
        1.0 / (1.0 + (-(self.slope * z + self.offset)).exp())
    }

    /// Whether it was fitted on answers with known truth: what it says may be called a probability.
    pub fn is_fitted(&self) -> bool {
        self.answers > 0
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
    let (mut slope, mut offset) = (0.0f64, ((right as f64 + 1.0) / (wrong as f64 + 1.0)).ln());
    for _ in 0..100 {
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
    (slope.is_finite() && offset.is_finite() && slope > 0.0).then_some(Calibration {
        slope,
        offset,
        answers: judged.len(),
        highest: judged.iter().map(|(z, _)| *z).reduce(f64::max),
        cut: None,
    })
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    #[test]
    fn a_known_curve_is_found_again() {
        let known = Calibration { slope: 1.5, offset: -4.0, answers: 0, highest: None, cut: None };
        let mut rng = Rng::new(3);
        let judged: Vec<(f64, bool)> = (0..20_000)
            .map(|_| {
                let z = rng.between(-1.0, 6.0);
                (z, rng.chance(known.probability(z)))
            })
            .collect();
        let found = fit_calibration(&judged).unwrap();
        assert!((found.slope - 1.5).abs() < 0.1 && (found.offset + 4.0).abs() < 0.25, "{found:?}");
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
        assert!(found.probability(10.0) < 1.0 && found.probability(10.0) > 0.9, "{found:?}");
        assert_eq!(found.probability(1000.0), found.probability(9.9), "nobody has seen more");
    }
}
