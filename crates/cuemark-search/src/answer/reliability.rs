//! Whether stated probabilities are what they say.

use serde::Serialize;

/// Where one bin ends and the next begins: narrow where most answers are.
const EDGES: [f64; 11] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0];

/// Stated probabilities beside how often such answers are right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reliability {
    /// In the order of probability; bins without an answer are left out.
    pub bins: Vec<ReliabilityBin>,
    /// Answers in all.
    pub answers: usize,
    /// Mean over answers of how far the stated probability is from the share of its bin that is right; 0 is honest.
    pub error: f64,
    /// Mean square of the stated probability less 1 for a right answer and 0 for a wrong one.
    pub brier: f64,
}

/// Answers whose stated probability is alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReliabilityBin {
    /// The least probability.
    pub from: f64,
    /// Below this one, which belongs to the next bin; 1 belongs to the last.
    pub to: f64,
    /// Answers.
    pub answers: usize,
    /// Their mean stated probability.
    pub stated: f64,
    /// The share that is right.
    pub right: f64,
}

impl Reliability {
    /// Of answers with their stated probability and whether each was right.
    pub fn of(judged: &[(f64, bool)]) -> Self {
        let count = judged.len().max(1) as f64;
        let mut bins = Vec::new();
        for (place, edges) in EDGES.windows(2).enumerate() {
            let &[from, to] = edges else { continue };
            let last = place + 2 == EDGES.len();
            let inside = judged.iter().filter(|(p, _)| (from..to).contains(p) || last && *p >= to);
            let inside: Vec<&(f64, bool)> = inside.collect();
            if inside.is_empty() {
                continue;
            }
            let answers = inside.len();
            let stated = inside.iter().map(|(p, _)| p).sum::<f64>() / answers as f64;
            let right = inside.iter().filter(|(_, right)| *right).count() as f64 / answers as f64;
            bins.push(ReliabilityBin { from, to, answers, stated, right });
        }
        let error = bins.iter().map(|bin| (bin.stated - bin.right).abs() * bin.answers as f64).sum::<f64>() / count;
        let square = |(p, right): &(f64, bool)| (p - f64::from(u8::from(*right))).powi(2);
        let brier = judged.iter().map(square).sum::<f64>() / count;
        Self { bins, answers: judged.len(), error, brier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_compare_what_was_said_with_what_was_so() {
        // Ten answers of probability 0.3, three right: honest. Four of 0.9, one right: not.
        let mut judged: Vec<(f64, bool)> = (0..10).map(|n| (0.3, n < 3)).collect();
        judged.extend((0..4).map(|n| (0.9, n == 0)));
        let found = Reliability::of(&judged);
        assert_eq!(found.bins.iter().map(|bin| bin.answers).collect::<Vec<_>>(), [10, 4]);
        assert!((found.bins[0].stated - 0.3).abs() < 1e-12 && (found.bins[0].right - 0.3).abs() < 1e-12);
        assert!((found.error - 4.0 * (0.9 - 0.25) / 14.0).abs() < 1e-12, "{found:?}");
        let by_hand = (3.0 * 0.49 + 7.0 * 0.09 + 0.01 + 3.0 * 0.81) / 14.0;
        assert!((found.brier - by_hand).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn certainty_has_a_bin_and_nothing_has_none() {
        assert_eq!(Reliability::of(&[(1.0, true)]).bins.len(), 1);
        assert!(Reliability::of(&[]).bins.is_empty());
    }
}
