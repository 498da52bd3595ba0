//! One vector in the search index.

use half::f16;
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

/// The same of halves, each made a full number as it is read: to the last bit what [`dot`] of the widened ones is.
pub(crate) fn dot_of_halves(a: &[f32], b: &[f16]) -> f32 {
    Arch::new().dispatch(SixteenSums { a, b })
}

/// What is made a full number as it is read.
trait Number: Copy {
    fn full(self) -> f32;
}

impl Number for f32 {
    #[inline(always)]
    fn full(self) -> f32 {
        self
    }
}

impl Number for f16 {
    // By arithmetic that the compiler does for sixteen at once: the half's exponent in the place of the full number's is 112 too small, for
    // halves below the normal ones too. What is not finite becomes a number beyond 65,504.
    #[inline(always)]
    fn full(self) -> f32 {
        const TO_THE_112TH: f32 = f32::from_bits((127 + 112) << 23);
        let (magnitude, sign) = (self.to_bits() & 0x7fff, self.to_bits() & 0x8000);
        let magnitude = f32::from_bits(u32::from(magnitude) << 13) * TO_THE_112TH;
        f32::from_bits(magnitude.to_bits() | u32::from(sign) << 16)
    }
}

/// A product, compiled for the processor that it runs on.
struct SixteenSums<'a, B> {
    a: &'a [f32],
    b: &'a [B],
}

impl<B: Number> NullaryFnOnce for SixteenSums<'_, B> {
    type Output = f32;

    #[inline(always)]
    fn call(self) -> f32 {
        sixteen_sums(self.a, self.b)
    }
}

#[inline(always)]
fn sixteen_sums<B: Number>(a: &[f32], b: &[B]) -> f32 {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (whole_a, rest_a) = a.as_chunks::<16>();
    let (whole_b, rest_b) = b.as_chunks::<16>();
    let mut sums = [0f32; 16];
    for (a, b) in whole_a.iter().zip(whole_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b.full();
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b.full()).sum();
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
    fn every_finite_half_is_widened_as_the_crate_of_halves_does() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            if half.is_finite() {
                assert_eq!(half.full().to_bits(), half.to_f32().to_bits(), "{bits:#x}");
            } else {
                assert!(half.full().abs() > 65_504.0, "{bits:#x}");
            }
        }
    }

    #[test]
    fn a_product_of_halves_is_that_of_the_full_numbers_to_the_last_bit() {
        for len in [1usize, 16, 40, 256, 259] {
            let a: Vec<f32> = (0..len).map(|n| (n as f32 * 0.37).sin()).collect();
            let halves: Vec<f16> = (0..len).map(|n| f16::from_f32((n as f32 * 0.91).cos() / 16.0)).collect();
            let full: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
            assert_eq!(dot_of_halves(&a, &halves).to_bits(), dot(&a, &full).to_bits(), "{len}");
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
