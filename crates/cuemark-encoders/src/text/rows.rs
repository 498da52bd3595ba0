//! What happens to single rows between the products, on the CPU: a bias and an activation, a residual and a norm, attention
//! inside one sentence. Plain loops that the compiler turns into the widest vectors of the machine at hand.

use cuemark_tensor::vectorised;

/// Lanes that sums are kept in, whatever the machine has: the order of additions is always the same.
const LANES: usize = 16;
const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// `ln 2` in two parts, the first short enough that its product with a small whole number is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding it to a small number rounds that to a whole one, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// `e^x` to a few parts in ten million; what is below -87 or above 88 counts as that.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * LOG2_E + ROUNDER;
    let whole = rounded - ROUNDER;
    let rest = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    let power = f32::from_bits((rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(127)) << 23);
    let series = 1.0 / 120.0 + rest * (1.0 / 720.0);
    let series = 1.0 / 6.0 + rest * (1.0 / 24.0 + rest * series);
    power * (1.0 + rest * (1.0 + rest * (0.5 + rest * series)))
}

/// The Gauss error function, to 1.5e-7: Abramowitz and Stegun, formula 7.1.26.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = t * (-1.453_152 + t * 1.061_405_4);
    let series = t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + series)));
    (1.0 - series * exp(-size * size)).copysign(x)
}

/// `x Φ(x)`, with `Φ` the normal distribution.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Adds `bias` to every row and applies GELU, in place.
pub(super) fn bias_gelu(rows: &mut [f32], bias: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len().max(1)) {
                row.iter_mut().zip(bias).for_each(|(x, bias)| *x = gelu(*x + bias));
            }
        },
    );
}

/// Adds `bias` to every row and cuts off what is below 0, in place.
pub(super) fn bias_relu(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len().max(1)) {
        row.iter_mut().zip(bias).for_each(|(x, bias)| *x = (*x + bias).max(0.0));
    }
}

/// The parameters of a layer norm and of the bias before it.
#[derive(Clone, Copy)]
pub(super) struct Norm<'a> {
    pub(super) bias: &'a [f32],
    pub(super) gain: &'a [f32],
    pub(super) shift: &'a [f32],
    pub(super) epsilon: f32,
}

/// `rows = norm(rows + bias + residual)`, row by row.
pub(super) fn add_norm(rows: &mut [f32], residual: &[f32], norm: Norm) {
    let width = norm.bias.len().max(1);
    vectorised(
        #[inline(always)]
        || {
            for (row, residual) in rows.chunks_exact_mut(width).zip(residual.chunks_exact(width)) {
                row.iter_mut().zip(residual.iter().zip(norm.bias)).for_each(|(x, (r, b))| *x += r + b);
                let mean = sum(row) / width as f32;
                row.iter_mut().for_each(|x| *x -= mean);
                let scale = 1.0 / (sum_of_squares(row) / width as f32 + norm.epsilon).sqrt();
                let parameters = norm.gain.iter().zip(norm.shift);
                row.iter_mut().zip(parameters).for_each(|(x, (gain, shift))| *x = *x * scale * gain + shift);
            }
        },
    );
}

#[inline(always)]
fn sum(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [0f32; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

#[inline(always)]
fn sum_of_squares(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [0f32; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x * x);
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| x * x).sum::<f32>()
}

/// Room that attention works in; kept between sentences.
#[derive(Default)]
pub(super) struct Room {
    /// Keys of one head, `[head width, padded tokens]`.
    keys: Vec<f32>,
    /// Values of one head, `[tokens, head width]`.
    values: Vec<f32>,
    /// Attention of one token to all.
    scores: Vec<f32>,
}

/// Attention inside one sentence: `qkv [tokens, 3 width]` (bias not yet added) to `out [tokens, width]`.
pub(super) fn attend(qkv: &[f32], bias: &[f32], heads: usize, out: &mut [f32], room: &mut Room) {
    let width = bias.len() / 3;
    let tokens = out.len() / width.max(1);
    let head_width = width / heads.max(1);
    if head_width == 0 || tokens == 0 {
        return;
    }
    let padded = tokens.next_multiple_of(LANES);
    let scale = 1.0 / (head_width as f32).sqrt();
    room.keys.clear();
    room.keys.resize(head_width * padded, 0.0);
    room.values.clear();
    room.values.resize(head_width * tokens, 0.0);
    room.scores.clear();
    room.scores.resize(padded, 0.0);
    let Room { keys, values, scores } = room;
    vectorised(
        #[inline(always)]
        || {
            for head in 0..heads {
                let part = |row: usize, which: usize| {
                    let start = which * width + head * head_width;
                    let numbers = &qkv[row * 3 * width + start..][..head_width];
                    numbers.iter().zip(&bias[start..][..head_width])
                };
                for token in 0..tokens {
                    for (place, (key, bias)) in part(token, 1).enumerate() {
                        keys[place * padded + token] = key + bias;
                    }
                    let to = &mut values[token * head_width..][..head_width];
                    to.iter_mut().zip(part(token, 2)).for_each(|(to, (value, bias))| *to = value + bias);
                }
                for token in 0..tokens {
                    scores.fill(0.0);
                    for (key, (query, bias)) in keys.chunks_exact(padded).zip(part(token, 0)) {
                        let query = (query + bias) * scale;
                        scores.iter_mut().zip(key).for_each(|(score, key)| *score += query * key);
                    }
                    let scores = &mut scores[..tokens];
                    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    scores.iter_mut().for_each(|score| *score = exp(*score - largest));
                    let share = 1.0 / scores.iter().sum::<f32>();
                    let to = &mut out[token * width + head * head_width..][..head_width];
                    to.fill(0.0);
                    for (value, score) in values.chunks_exact(head_width).zip(scores.iter()) {
                        let share = score * share;
                        to.iter_mut().zip(value).for_each(|(to, value)| *to += share * value);
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_standard_library() {
        let mut x = -86.5f32;
        while x < 87.5 {
            let (ours, theirs) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours - theirs).abs() <= 4e-7 * theirs, "exp({x}) = {ours}, not {theirs}");
            x += 0.0371;
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e9) < 1e-37 && exp(f32::NEG_INFINITY) < 1e-37);
        assert!(exp(1e9).is_finite());
    }

    #[test]
    fn the_error_function_is_its_integral() {
        // 2/√π ∫ e^-t² dt by Simpson's rule in double precision.
        let integral = |x: f64| {
            let (n, f) = (2_000, |t: f64| (-t * t).exp());
            let h = x / f64::from(n);
            let inner: f64 = (1..n).map(|k| f(f64::from(k) * h) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
            std::f64::consts::FRAC_2_SQRT_PI * h / 3.0 * (f(0.0) + inner + f(x))
        };
        for step in -60..=60 {
            let x = step as f32 * 0.08;
            assert!((f64::from(erf(x)) - integral(f64::from(x))).abs() < 5e-7, "erf({x}) = {}", erf(x));
        }
        // Φ(1) is 0.841344746.
        assert!((gelu(1.0) - 0.841_344_8).abs() < 5e-7);
        assert!((gelu(-1.0) + 0.158_655_25).abs() < 5e-7);
    }

    #[test]
    fn a_normed_row_has_mean_zero_and_variance_one_before_gain_and_shift() {
        // (1, 2, 3, 6) has mean 3 and variance 3.5; with gain 2 and shift 1 the last is 1 + 2·3/√3.5.
        let mut row = [0.0, 1.0, 1.0, 4.0];
        let norm = Norm { bias: &[0.5, 0.5, 0.5, 0.5], gain: &[2.0; 4], shift: &[1.0; 4], epsilon: 0.0 };
        add_norm(&mut row, &[0.5, 0.5, 1.5, 1.5], norm);
        assert!((row[3] - (1.0 + 6.0 / 3.5f32.sqrt())).abs() < 1e-6, "{row:?}");
        assert!((row.iter().sum::<f32>() - 4.0).abs() < 1e-5);
    }

    #[test]
    fn attention_is_the_weighted_mean_of_the_values() {
        // One head of width 1, two tokens: queries (0, 1), keys (1, 2) after a bias of 1, values (10, 20).
        let qkv = [0.0, 0.0, 10.0, 1.0, 1.0, 20.0];
        let mut out = [0.0; 2];
        attend(&qkv, &[0.0, 1.0, 0.0], 1, &mut out, &mut Room::default());
        let weight = 1.0 / (1.0 + 1f32.exp());
        assert!((out[0] - 15.0).abs() < 1e-5, "{out:?}");
        assert!((out[1] - (10.0 * weight + 20.0 * (1.0 - weight))).abs() < 1e-4, "{out:?}");
    }
}
