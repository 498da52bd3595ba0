//! Two to a negative power, in straight-line code that a compiler turns into vector instructions.

/// Powers below this count as this one; `2^-1000` is 0 for every purpose here.
const LOWEST: f64 = 1000.0;
/// Adding it to a small number leaves the number, rounded to an integer, in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52

/// Taylor coefficients `ln(2)^k / k!` of `2^f`, constant first; on `|f| <= 1/2` the first one left out is below 7e-15.
const COEFFICIENTS: [f64; 12] = {
    let mut coefficients = [1.0; 12];
    let mut k = 1;
    while k < coefficients.len() {
        coefficients[k] = coefficients[k - 1] * std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    coefficients
};

/// `2^-power` for `power >= 0`, within a relative error of 1e-14; about `2^-1000` for every power above 1000.
#[inline(always)]
pub(super) fn exp2_neg(power: f64) -> f64 {
    let power = power.min(LOWEST);
    let shifted = ROUNDER - power;
    let fraction = (ROUNDER - shifted) - power; // in -1/2 ..= 1/2
    // The low bits of `shifted` hold minus the rounded power; moved into the exponent they are the power of two.
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let mut value = COEFFICIENTS[11];
    let mut k = 11;
    while k > 0 {
        k -= 1;
        // One instruction where the processor has it; our callers run where it does, see `tiles`.
        value = value.mul_add(fraction, COEFFICIENTS[k]);
    }
    value * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library_to_the_stated_error() {
        for step in 0..=1_000_000 {
            let power = f64::from(step) * 1e-3 + f64::from(step % 7) * 1e-5;
            let (ours, theirs) = (exp2_neg(power), (-power.min(LOWEST)).exp2());
            assert!((ours - theirs).abs() <= 1e-14 * theirs, "2^-{power}: {ours:e} {theirs:e}");
        }
    }

    #[test]
    fn whole_powers_are_exact_and_huge_ones_vanish() {
        assert_eq!(exp2_neg(0.0), 1.0);
        assert_eq!(exp2_neg(10.0), 1.0 / 1024.0);
        for huge in [1e4, 1e300, f64::INFINITY] {
            assert!(exp2_neg(huge) < 1e-300);
        }
    }
}
