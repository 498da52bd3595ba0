//! One vector in the search index.

use pulp::{Arch, NullaryFnOnce};

/// A vector of length 1, of as many dimensions as its encoder gives: the product of two is their cosine similarity.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(Vec<f32>);

impl Embedding {
    /// `numbers` brought to length 1; `None` when they have no direction (all zero, none, or not finite).
    ///
    /// ```
    /// use cuemark_search::Embedding;
    /// assert_eq!(Embedding::unit(vec![3.0, 4.0]).unwrap().numbers(), [0.6, 0.8]);
    /// assert!(Embedding::unit(vec![0.0, 0.0]).is_none());
    /// ```
    pub fn unit(mut numbers: Vec<f32>) -> Option<Self> {
        let length = numbers.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        for x in &mut numbers {
            *x = (f64::from(*x) / length) as f32;
        }
        Some(Self(numbers))
    }

    /// Its numbers.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// How many numbers it has.
    pub fn width(&self) -> usize {
        self.0.len()
    }

    /// The cosine with another of the same width.
    pub fn cosine(&self, other: &Self) -> f32 {
        dot(&self.0, &other.0)
    }

    /// This one moved away from `other` by `strength`; itself when nothing would be left.
    #[must_use]
    pub fn away_from(&self, other: &Self, strength: f32) -> Self {
        let moved = self.0.iter().zip(&other.0).map(|(a, b)| a - strength * b).collect();
        Self::unit(moved).unwrap_or_else(|| self.clone())
    }
}

/// The product of two vectors; the longer one's rest is left out. The order of additions is fixed, so equal vectors give
/// equal products on every machine with the same vector width.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    Arch::new().dispatch(SixteenSums { a, b })
}

/// A product, compiled for the processor that it runs on.
struct SixteenSums<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl NullaryFnOnce for SixteenSums<'_> {
    type Output = f32;

    #[inline(always)]
    fn call(self) -> f32 {
        sixteen_sums(self.a, self.b)
    }
}

#[inline(always)]
fn sixteen_sums(a: &[f32], b: &[f32]) -> f32 {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (whole_a, rest_a) = a.as_chunks::<16>();
    let (whole_b, rest_b) = b.as_chunks::<16>();
    let mut sums = [0f32; 16];
    for (a, b) in whole_a.iter().zip(whole_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    // Pairwise, so that the result does not hang on how the lanes were kept.
    let mut width = 8;
    while width > 0 {
        let (low, high) = sums.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        width /= 2;
    }
    sums[0] + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_any_length_are_right() {
        for len in [0usize, 1, 15, 16, 17, 40, 256] {
            let a: Vec<f32> = (0..len).map(|n| n as f32 % 7.0 - 3.0).collect();
            let b: Vec<f32> = (0..len).map(|n| n as f32 % 5.0 - 2.0).collect();
            // Small whole numbers, so every order of additions is exact.
            let expected: i64 = (0..len).map(|n| (n as i64 % 7 - 3) * (n as i64 % 5 - 2)).sum();
            assert_eq!(dot(&a, &b), expected as f32, "{len}");
        }
    }

    #[test]
    fn a_vector_without_direction_is_no_embedding() {
        assert!(Embedding::unit(vec![]).is_none());
        assert!(Embedding::unit(vec![f32::NAN, 1.0]).is_none());
        assert!(Embedding::unit(vec![f32::INFINITY]).is_none());
    }

    #[test]
    fn moving_away_lowers_the_cosine() {
        let (a, b) = (Embedding::unit(vec![1.0, 0.2]).unwrap(), Embedding::unit(vec![0.0, 1.0]).unwrap());
        assert!(a.away_from(&b, 0.5).cosine(&b) < a.cosine(&b));
        assert_eq!(a.away_from(&a, 1.0), a);
    }
}
