//! Loops over many numbers that candle runs one at a time: exponentials with the widest instructions, rows on all cores.

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor, bail};
use cuemark_tensor::vectorised;
use rayon::prelude::*;

/// Numbers that one task computes.
const BLOCK: usize = 1 << 14;

/// `e^x` to a few parts in ten million, for `x <= 88`; 0 below -87.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.3);
    // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, so that r keeps its digits. Adding and taking away 1.5 · 2^23 rounds.
    let magic = 12_582_912.0f32;
    let n = (x * std::f32::consts::LOG2_E + magic) - magic;
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    p * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

/// `x Φ(x)`, the exact Gaussian error linear unit; the error function by Abramowitz and Stegun 7.1.26, to 1.5e-7.
#[inline(always)]
fn gelu_of(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4;
    let p = p * t - 1.453_152;
    let p = p * t + 1.421_413_7;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let erf = 1.0 - p * t * exp(-z * z);
    0.5 * x * (1.0 + erf.copysign(x))
}

/// `x Φ(x)` of every number; `x` itself is changed.
#[expect(clippy::needless_pass_by_value, reason = "what is changed in place may be nobody else's")]
pub(crate) fn gelu(x: Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return x.gelu_erf();
    }
    let x = x.contiguous()?;
    x.inplace_op1(&Gelu)?;
    Ok(x)
}

/// Softmax along the last axis; `x` itself is changed.
#[expect(clippy::needless_pass_by_value, reason = "what is changed in place may be nobody else's")]
pub(crate) fn softmax(x: Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return candle_nn::ops::softmax_last_dim(&x.contiguous()?);
    }
    let x = x.contiguous()?;
    x.inplace_op1(&Softmax)?;
    Ok(x)
}

struct Gelu;
struct Softmax;

fn numbers<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let (CpuStorage::F32(numbers), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
        bail!("single precision in one piece is wanted")
    };
    match numbers.get_mut(start..end) {
        Some(numbers) => Ok(numbers),
        None => bail!("a layout beyond its storage"),
    }
}

impl InplaceOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu-in-place"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        numbers(storage, layout)?.par_chunks_mut(BLOCK).for_each(|block| {
            vectorised(
                #[inline(always)]
                || block.iter_mut().for_each(|x| *x = gelu_of(*x)),
            );
        });
        Ok(())
    }
}

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax-in-place"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let width = layout.dims().last().copied().unwrap_or(1).max(1);
        let rows = (BLOCK / width).max(1) * width;
        numbers(storage, layout)?.par_chunks_mut(rows).for_each(|block| {
            for row in block.chunks_exact_mut(width) {
                vectorised(
                    #[inline(always)]
                    || softmax_row(row),
                );
            }
        });
        Ok(())
    }
}

/// Sums in eight lanes, which the compiler may keep in one register; a single sum it may not split.
#[inline(always)]
fn softmax_row(row: &mut [f32]) {
    let mut largest = [f32::NEG_INFINITY; 16];
    let (lanes, rest) = row.as_chunks::<16>();
    for lane in lanes {
        largest.iter_mut().zip(lane).for_each(|(largest, x)| *largest = if *x > *largest { *x } else { *largest });
    }
    let largest = largest.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0f32; 16];
    let (lanes, rest) = row.as_chunks_mut::<16>();
    for lane in lanes {
        for (sum, x) in sums.iter_mut().zip(lane) {
            *x = exp(*x - largest);
            *sum += *x;
        }
    }
    let mut sum: f32 = sums.iter().sum();
    for x in rest {
        *x = exp(*x - largest);
        sum += *x;
    }
    let scale = 1.0 / sum;
    row.iter_mut().for_each(|x| *x *= scale);
}

/// `log Σ e^x`; minus infinity of nothing.
pub(crate) fn log_sum_exp(values: &[f32]) -> f32 {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        return largest;
    }
    let sum = vectorised(
        #[inline(always)]
        || {
            let mut sums = [0f32; 16];
            let (lanes, rest) = values.as_chunks::<16>();
            for lane in lanes {
                sums.iter_mut().zip(lane).for_each(|(sum, x)| *sum += exp(*x - largest));
            }
            sums.iter().sum::<f32>() + rest.iter().map(|x| exp(*x - largest)).sum::<f32>()
        },
    );
    largest + sum.ln()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for step in -8_000..800 {
            let x = step as f32 * 0.01;
            let (ours, true_one) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours / true_one - 1.0).abs() < 1e-6, "{x}: {ours} {true_one}");
        }
        assert!(exp(-1000.0) < 1e-37);
    }

    #[test]
    fn units_and_softmax_are_those_of_candle() {
        let x: Vec<f32> = (0..4_000).map(|n| ((n * 37) % 1_601) as f32 * 0.01 - 8.0).collect();
        let x = Tensor::from_vec(x, (40, 100), &Device::Cpu).unwrap();
        let far =
            |a: &Tensor, b: &Tensor| (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(far(&gelu(x.copy().unwrap()).unwrap(), &x.gelu_erf().unwrap()) < 2e-6);
        let ours = softmax(x.copy().unwrap()).unwrap();
        assert!(far(&ours, &candle_nn::ops::softmax(&x, 1).unwrap()) < 1e-6);
    }

    #[test]
    fn a_sum_of_exponentials_does_not_overflow() {
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f32.ln())).abs() < 1e-3);
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY; 3]), f32::NEG_INFINITY);
    }
}
