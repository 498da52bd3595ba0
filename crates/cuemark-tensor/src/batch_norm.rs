//! Batch norm while training, on the CPU: the statistics in two passes over memory, the rest in one, back in two.
//!
//! Composed of general operations it is a dozen passes forward and twice as many back, each on one thread.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, D, Device, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::map::numbers;
use crate::slices::with_numbers;
use crate::vectorised;
use crate::zeros::zeros;

/// Rows that are added one after the other before blocks are added to each other.
const BLOCK_ROWS: usize = 256;
/// Rows of what goes along with the input: weight, bias, mean, variance, and the value of constant rows.
const ALONG: usize = 5;

/// What is normalised, beside the input itself.
#[derive(Debug, Clone)]
pub struct Normalising<'a> {
    /// Factor of each channel, `[channels]`.
    pub weight: &'a Tensor,
    /// Added to it, `[channels]`.
    pub bias: &'a Tensor,
    /// Rows that count in the statistics, all of this value `[channels]`, and are not part of the input.
    pub constant: Option<(usize, &'a Tensor)>,
    /// Added to the variance.
    pub eps: f64,
    /// Where given, what is below 0 becomes 0, and row `n` of every item is multiplied by the `n`th of these.
    pub shares: Option<Arc<Vec<f32>>>,
}

/// The result and its statistics.
#[derive(Debug, Clone)]
pub struct Normalised {
    /// As the input.
    pub y: Tensor,
    /// The mean of each channel, `[channels]`; no gradient goes through.
    pub mean: Tensor,
    /// The variance of each channel around it, divided by the number of rows, `[channels]`; no gradient goes through.
    pub variance: Tensor,
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias` per channel, by the statistics of all rows.
///
/// # Shapes
/// - x `[.., channels]`; returns the same
///
/// # Errors
/// When shapes do not fit each other, or on a GPU.
pub fn batch_norm(x: &Tensor, by: Normalising) -> Result<Normalised> {
    let (x, channels) = (x.contiguous()?, x.dim(D::Minus1)?);
    let (others, value) = by.constant.map_or((0, None), |(rows, value)| (rows, Some(value)));
    let rows = x.elem_count() / channels.max(1);
    if [Some(by.weight), Some(by.bias), value].iter().flatten().any(|part| part.dims() != [channels]) || rows == 0 {
        bail!("weights {:?} for {:?} numbers", by.weight.dims(), x.dims());
    }
    if by.shares.as_ref().is_some_and(|shares| shares.is_empty() || !rows.is_multiple_of(shares.len())) {
        bail!("shares of another number of rows than {rows}");
    }
    let value = value.map_or_else(|| by.weight.zeros_like(), |value| Ok(value.clone()))?;
    let [mean, variance] = statistics(&x, &value.contiguous()?, others, channels)?;
    let along = Tensor::stack(&[by.weight, by.bias, &mean, &variance, &value], 0)?;
    let y = x.apply_op2(&along, Norm { others, eps: by.eps as f32, shares: by.shares })?;
    Ok(Normalised { y, mean, variance })
}

/// Mean and variance of the rows and `others` more of `value`.
fn statistics(x: &Tensor, value: &Tensor, others: usize, channels: usize) -> Result<[Tensor; 2]> {
    with_numbers(&[x, value], |slices| {
        let (x, value) = (slices[0], slices[1]);
        let count = (x.len() / channels + others) as f64;
        let sums = column_sums::<1>(x.len() / channels, channels, |row, sums| {
            sums.iter_mut().zip(&x[row * channels..]).for_each(|(sum, x)| *sum += x);
        });
        let mean = |(sum, value): (&f64, &f32)| ((sum + others as f64 * f64::from(*value)) / count) as f32;
        let mean: Vec<f32> = sums.iter().zip(value).map(mean).collect();
        let sums = column_sums::<1>(x.len() / channels, channels, |row, sums| {
            for (sum, (x, mean)) in sums.iter_mut().zip(x[row * channels..].iter().zip(&mean)) {
                *sum += (x - mean) * (x - mean);
            }
        });
        let variance = |(sum, (value, mean)): (&f64, (&f32, &f32))| {
            ((sum + others as f64 * f64::from(value - mean).powi(2)) / count) as f32
        };
        let variance: Vec<f32> = sums.iter().zip(value.iter().zip(&mean)).map(variance).collect();
        Ok([Tensor::from_vec(mean, channels, &Device::Cpu)?, Tensor::from_vec(variance, channels, &Device::Cpu)?])
    })
}

/// `N` sums per channel over rows, in an order that does not depend on the number of threads; `add` adds a row to them.
fn column_sums<const N: usize>(rows: usize, channels: usize, add: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f64> {
    let block = |block: usize| {
        let mut sums = vec![0f32; N * channels];
        let last = rows.min((block + 1) * BLOCK_ROWS);
        vectorised(
            #[inline(always)]
            || (block * BLOCK_ROWS..last).for_each(|row| add(row, &mut sums)),
        );
        sums
    };
    let blocks: Vec<Vec<f32>> = (0..rows.div_ceil(BLOCK_ROWS)).into_par_iter().with_max_len(1).map(block).collect();
    let mut total = vec![0f64; N * channels];
    for block in &blocks {
        total.iter_mut().zip(block).for_each(|(total, sum)| *total += f64::from(*sum));
    }
    total
}

struct Norm {
    others: usize,
    eps: f32,
    shares: Option<Arc<Vec<f32>>>,
}

/// What stands in [`ALONG`] rows, one per channel, and the inverse of the deviation.
struct Along<'a> {
    weight: &'a [f32],
    bias: &'a [f32],
    mean: &'a [f32],
    value: &'a [f32],
    inverse: Vec<f32>,
}

impl Norm {
    fn along<'a>(&self, all: &'a [f32]) -> Along<'a> {
        let part = |number: usize| &all[number * all.len() / ALONG..(number + 1) * all.len() / ALONG];
        let inverse = part(3).iter().map(|variance| 1.0 / (variance + self.eps).sqrt()).collect();
        Along { weight: part(0), bias: part(1), mean: part(2), value: part(4), inverse }
    }

    /// What row `row` is multiplied by in the end; `None` where nothing is bent.
    fn share(&self, row: usize) -> Option<f32> {
        self.shares.as_ref().map(|shares| shares[row % shares.len()])
    }

    /// Gradients of the input and of what goes along with it.
    fn gradients(&self, x: &Tensor, along: &Tensor, y: &Tensor, gradient: &Tensor) -> Result<[Tensor; 2]> {
        let channels = along.dim(1)?;
        with_numbers(&[x, along, y, gradient], |slices| {
            let (x, y, pull) = (slices[0], slices[2], slices[3]);
            let Along { weight, mean, value, inverse, .. } = self.along(slices[1]);
            let rows = x.len() / channels;
            // The gradient before the bend.
            let before = |share: Option<f32>, y: f32, pull: f32| match share {
                Some(share) => {
                    if y > 0.0 {
                        pull * share
                    } else {
                        0.0
                    }
                }
                None => pull,
            };
            let sums = column_sums::<2>(rows, channels, |row, sums| {
                let share = self.share(row);
                let (of_bias, of_weight) = sums.split_at_mut(channels);
                let at = row * channels..(row + 1) * channels;
                let (x, y, pull) = (&x[at.clone()], &y[at.clone()], &pull[at]);
                for n in 0..channels {
                    let pull = before(share, y[n], pull[n]);
                    of_bias[n] += pull;
                    of_weight[n] += pull * (x[n] - mean[n]) * inverse[n];
                }
            });
            let (of_bias, of_weight) = sums.split_at(channels);
            let count = (rows + self.others) as f64;
            // Of a row: scale * (pull - shift - place * slope), with `place` where it lies among the others.
            let scale: Vec<f32> = weight.iter().zip(&inverse).map(|(weight, inverse)| weight * inverse).collect();
            let part = |sums: &[f64]| sums.iter().map(|sum| (sum / count) as f32).collect::<Vec<f32>>();
            let (shift, slope) = (part(of_bias), part(of_weight));
            let mut of_x = zeros(x.len());
            of_x.par_chunks_mut(BLOCK_ROWS * channels).enumerate().for_each(|(block, to)| {
                vectorised(
                    #[inline(always)]
                    || {
                        for (row, to) in to.chunks_exact_mut(channels).enumerate() {
                            let row = block * BLOCK_ROWS + row;
                            let share = self.share(row);
                            let at = row * channels..(row + 1) * channels;
                            let (x, y, pull) = (&x[at.clone()], &y[at.clone()], &pull[at]);
                            for n in 0..channels {
                                let place = (x[n] - mean[n]) * inverse[n];
                                to[n] = scale[n] * (before(share, y[n], pull[n]) - shift[n] - place * slope[n]);
                            }
                        }
                    },
                );
            });
            let mut of_along = vec![0f32; ALONG * channels];
            for n in 0..channels {
                let place = (value[n] - mean[n]) * inverse[n];
                of_along[n] = of_weight[n] as f32;
                of_along[channels + n] = of_bias[n] as f32;
                of_along[4 * channels + n] = self.others as f32 * scale[n] * (-shift[n] - place * slope[n]);
            }
            let of_along = Tensor::from_vec(of_along, (ALONG, channels), &Device::Cpu)?;
            Ok([Tensor::from_vec(of_x, gradient.shape(), &Device::Cpu)?, of_along])
        })
    }
}

impl CustomOp2 for Norm {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, along: &CpuStorage, of: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, (_, channels)) = (numbers(x, layout)?, of.shape().dims2()?);
        let Along { weight, bias, mean, inverse, .. } = self.along(numbers(along, of)?);
        let scale: Vec<f32> = weight.iter().zip(&inverse).map(|(weight, inverse)| weight * inverse).collect();
        let mut y = zeros(x.len());
        y.par_chunks_mut(BLOCK_ROWS * channels).zip(x.par_chunks(BLOCK_ROWS * channels)).enumerate().for_each(
            |(block, (y, x))| {
                vectorised(
                    #[inline(always)]
                    || {
                        let rows = y.chunks_exact_mut(channels).zip(x.chunks_exact(channels));
                        for (row, (y, x)) in rows.enumerate() {
                            let share = self.share(block * BLOCK_ROWS + row);
                            for n in 0..channels {
                                let at = (x[n] - mean[n]) * scale[n] + bias[n];
                                y[n] = share.map_or(at, |share| if at < 0.0 { 0.0 } else { at } * share);
                            }
                        }
                    },
                );
            },
        );
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        along: &Tensor,
        y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [of_x, of_along] = self.gradients(x, along, &y.contiguous()?, &gradient.contiguous()?)?;
        Ok((Some(of_x), Some(of_along)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, draw};

    /// The same of general operations, whose gradients candle works out.
    fn composed(x: &Tensor, by: &Normalising) -> Tensor {
        let (others, value) = by.constant.unwrap();
        let rows = x.flatten_to(1).unwrap();
        let count = (rows.dim(0).unwrap() + others) as f64;
        let sum = (rows.sum(0).unwrap() + (value * others as f64).unwrap()).unwrap();
        let mean = (sum / count).unwrap();
        let centred = x.broadcast_sub(&mean).unwrap();
        let apart = ((value - &mean).unwrap().sqr().unwrap() * others as f64).unwrap();
        let squares = (centred.sqr().unwrap().flatten_to(1).unwrap().sum(0).unwrap() + apart).unwrap();
        let factor = (by.weight / ((squares / count).unwrap() + by.eps).unwrap().sqrt().unwrap()).unwrap();
        let y = centred.broadcast_mul(&factor).unwrap().broadcast_add(by.bias).unwrap();
        match &by.shares {
            Some(shares) => {
                let shares = Tensor::from_slice(shares.as_slice(), (shares.len(), 1), &Device::Cpu).unwrap();
                y.relu().unwrap().broadcast_mul(&shares).unwrap()
            }
            None => y,
        }
    }

    fn flat(x: &Tensor) -> Vec<f64> {
        x.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f64::from).collect()
    }

    #[test]
    fn values_and_gradients_are_those_of_general_operations() {
        let rng = &mut Rng::new(8);
        for (items, cells, channels, others, bent) in
            [(2, 3, 5, 0, false), (3, 210, 17, 40, true), (1, 600, 64, 9, true)]
        {
            let var = |rng: &mut Rng, shape: &[usize]| {
                let numbers = draw(rng, shape.iter().product());
                Var::from_tensor(&Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap()).unwrap()
            };
            let x = var(rng, &[items, cells, channels]);
            let [weight, bias, value] = [(); 3].map(|()| var(rng, &[channels]));
            let shares = bent.then(|| Arc::new((0..cells).map(|cell| 1.0 / (1 + cell % 3) as f32).collect()));
            let by = || Normalising {
                weight: &weight,
                bias: &bias,
                constant: Some((others, value.as_tensor())),
                eps: 1e-5,
                shares: shares.clone(),
            };
            let pull = var(rng, &[items, cells, channels]);
            let through = |y: &Tensor| {
                let gradients = (y * pull.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
                // What counts for nothing, a constant that stands nowhere, has no gradient or one of zeros.
                let of = |var: &Var| gradients.get(var).map_or_else(|| vec![0.0; var.elem_count()], flat);
                [&x, &weight, &bias, &value].map(of)
            };
            let (ours, wanted) = (batch_norm(&x, by()).unwrap().y, composed(&x, &by()));
            let what = format!("{items} x {cells} x {channels} and {others}");
            assert_close(&ours, &flat(&wanted), 1e-5, &what);
            for (n, (ours, wanted)) in through(&ours).into_iter().zip(through(&wanted)).enumerate() {
                let most = wanted.iter().map(|x| x.abs()).fold(1.0, f64::max);
                let worst = ours.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst < 2e-5 * most, "{what}, gradient {n}: off by {worst} where the largest is {most}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let ones = |count: usize| Tensor::ones(count, candle_core::DType::F32, &Device::Cpu).unwrap();
        let (x, weight, short) = (ones(12).reshape((4, 3)).unwrap(), ones(3), ones(2));
        let by = |bias, shares| Normalising { weight: &weight, bias, constant: None, eps: 1e-5, shares };
        assert!(batch_norm(&x, by(&short, None)).is_err());
        assert!(batch_norm(&x, by(&weight, Some(Arc::new(vec![1.0; 3])))).is_err());
        assert!(batch_norm(&x, by(&weight, Some(Arc::new(vec![1.0; 2])))).is_ok());
    }
}
