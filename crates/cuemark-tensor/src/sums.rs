//! Sums that the compiler may keep in wide registers: sixteen beside each other, added up in a fixed order at the end.

const LANES: usize = 16;

/// The sum of `of` each number; meant to be called inside [`crate::vectorised`].
#[inline(always)]
pub(crate) fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += of(*number);
        }
    }
    for (lane, number) in lanes.iter_mut().zip(rest) {
        *lane += of(*number);
    }
    fold(lanes)
}

/// The sum of products.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (rest_a, rest_b) = (a.remainder(), b.remainder());
    for (a, b) in a.zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *lane += a * b;
    }
    fold(lanes)
}

/// The largest number, `-inf` of none.
#[inline(always)]
pub(crate) fn largest(numbers: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = if *number > *lane { *number } else { *lane };
        }
    }
    for (lane, number) in lanes.iter_mut().zip(rest) {
        *lane = if *number > *lane { *number } else { *lane };
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

#[inline(always)]
fn fold(lanes: [f32; LANES]) -> f32 {
    let half: [f32; LANES / 2] = std::array::from_fn(|n| lanes[n] + lanes[n + LANES / 2]);
    let quarter: [f32; LANES / 4] = std::array::from_fn(|n| half[n] + half[n + LANES / 4]);
    (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
}

/// `exp(x)` for `x <= 0`, within two units of the last place; exactly 0 below -87.
///
/// The one of the standard library is called number by number; this is a polynomial that a loop computes for many at once.
#[inline(always)]
pub(crate) fn exp_below_zero(x: f32) -> f32 {
    // Added to a number of that size, everything after the point is rounded away and the whole part stands in the last bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let kept = if x < -87.0 { -87.0 } else { x };
    let shifted = kept * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (kept - whole * LN_2[0]) - whole * LN_2[1];
    let mut y = 1.987_569_1e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        y = y * rest + factor;
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3F80_0000));
    let y = (y * rest * rest + rest + 1.0) * power;
    if x < -87.0 { 0.0 } else { y }
}

/// The hyperbolic tangent, off by at most 2e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let power = exp_below_zero(-2.0 * x.abs());
    ((1.0 - power) / (1.0 + power)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_every_length_are_those_of_a_loop() {
        for length in 0..70 {
            let numbers: Vec<f32> = (0..length).map(|n| (n as f32 * 0.7).sin() - 2.0).collect();
            let wanted: f64 = numbers.iter().map(|x| f64::from(*x)).sum();
            assert!((f64::from(sum(&numbers, |x| x)) - wanted).abs() < 1e-4);
            let wanted: f64 = numbers.iter().map(|x| f64::from(*x).powi(2)).sum();
            assert!((f64::from(dot(&numbers, &numbers)) - wanted).abs() < 1e-3);
            assert_eq!(largest(&numbers), numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }

    #[test]
    fn exponentials_are_right_to_the_last_places_and_vanish_in_the_end() {
        for n in 0..=870_000 {
            let x = -(n as f32) * 1e-4;
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp_below_zero(x)) - wanted).abs() <= 2.5e-7 * wanted, "{x}");
        }
        assert_eq!([0.0, -87.5, -1e9, f32::NEG_INFINITY].map(exp_below_zero), [1.0, 0.0, 0.0, 0.0]);
        assert!(exp_below_zero(f32::NAN).is_nan());
    }

    #[test]
    fn tangents_are_right_on_both_sides() {
        for n in -20_000..=20_000 {
            let x = n as f32 * 1e-3;
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 2e-7, "{x}");
        }
        assert_eq!([f32::INFINITY, f32::NEG_INFINITY, 0.0].map(tanh), [1.0, -1.0, 0.0]);
        assert!(tanh(f32::NAN).is_nan());
    }
}
