//! Seeded randomness that gives the same numbers on every machine and with every version of a dependency.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// A ChaCha stream with the few draws that cuemark needs, defined here so that no other crate can change them.
#[derive(Debug, Clone)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// An independent stream of the same seed for a named purpose, so that adding draws in one place moves none elsewhere.
    pub fn stream(seed: u64, purpose: &str) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(crate::digest::fnv1a(purpose.as_bytes()));
        Self(rng)
    }

    /// 32 random bits.
    pub fn bits32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `low..high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform index below `n`; 0 when `n` is 0. The bias of the multiply-and-shift is below `n / 2^64`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// One item, `None` of nothing.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// An index drawn in proportion to `weights`; negative weights count as 0. `None` when all are 0.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().map(|weight| weight.max(0.0)).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let mut left = self.uniform() * total;
        for (index, weight) in weights.iter().enumerate() {
            left -= weight.max(0.0);
            if left < 0.0 {
                return Some(index);
            }
        }
        weights.iter().rposition(|weight| *weight > 0.0)
    }

    /// Puts `items` in random order (Fisher and Yates, from the back).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_and_another_seed_another() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn purposes_do_not_share_a_stream() {
        assert_ne!(Rng::stream(7, "sampling").bits(), Rng::stream(7, "shuffling").bits());
    }

    #[test]
    fn draws_fill_their_range_evenly() {
        let mut rng = Rng::new(1);
        let mut seen = [0usize; 7];
        for _ in 0..70_000 {
            seen[rng.below(7)] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
    }

    #[test]
    fn normal_draws_have_mean_0_and_variance_1() {
        let mut rng = Rng::new(2);
        let draws: Vec<f64> = (0..100_000).map(|_| rng.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
