//! Rows of length 1, as one operation on the CPU: composed of general ones it is five passes forward and a dozen back, each on one
//! thread.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::linear::rows_of;
use crate::map::numbers;
use crate::sums::{dot, sum};
use crate::vectorised;

/// Numbers that one task passes over.
const BLOCK: usize = 1 << 13;
/// The least square of a length: shorter rows are divided by its root, and the root's gradient stays finite.
pub(crate) const LEAST_SQUARE: f32 = 1e-24;

/// Every row of the last axis over its length; 32-bit numbers on the CPU, at least one.
pub(crate) fn unit_rows(x: &Tensor) -> Result<Tensor> {
    x.contiguous()?.apply_op1(UnitRows)
}

struct UnitRows;

/// One over the length of a row, and whether the row is long enough to have one.
#[inline(always)]
fn inverse(row: &[f32]) -> (f32, bool) {
    let square = sum(row, |x| x * x);
    // Not a number stays none.
    if square < LEAST_SQUARE { (1.0 / LEAST_SQUARE.sqrt(), false) } else { (1.0 / square.sqrt(), true) }
}

impl CustomOp1 for UnitRows {
    fn name(&self) -> &'static str {
        "unit-rows"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, (_, width)) = (numbers(x, layout)?, rows_of(layout));
        let block = BLOCK.div_ceil(width) * width;
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(block).zip(x.par_chunks(block)).for_each(|(y, x)| {
            vectorised(
                #[inline(always)]
                || {
                    for (y, x) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                        let (inverse, _) = inverse(x);
                        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * inverse);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        x.apply_op2_no_bwd(&gradient.contiguous()?, &UnitRowsGradient).map(Some)
    }
}

struct UnitRowsGradient;

impl CustomOp2 for UnitRowsGradient {
    fn name(&self) -> &'static str {
        "unit-rows-gradient"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, g: &CpuStorage, of_g: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, g, (_, width)) = (numbers(x, layout)?, numbers(g, of_g)?, rows_of(layout));
        let block = BLOCK.div_ceil(width) * width;
        let mut to = vec![0f32; x.len()];
        to.par_chunks_mut(block).zip(x.par_chunks(block)).zip(g.par_chunks(block)).for_each(|((to, x), g)| {
            vectorised(
                #[inline(always)]
                || {
                    let rows = to.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(g.chunks_exact(width));
                    for ((to, x), g) in rows {
                        let (inverse, long) = inverse(x);
                        // What pulls along the row changes its length alone.
                        let along = if long { dot(x, g) * inverse * inverse } else { 0.0 };
                        to.iter_mut().zip(x.iter().zip(g)).for_each(|(to, (x, g))| *to = (g - x * along) * inverse);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(to), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cuemark_core::Rng;

    use super::*;
    use crate::against::draw;
    use crate::functional::{l2_normalise, l2_normalise_along};

    #[test]
    fn rows_and_gradients_are_those_of_general_operations_also_of_no_length() {
        let rng = &mut Rng::new(5);
        for (rows, width) in [(1, 1), (7, 5), (300, 64), (2, 9_000)] {
            let mut numbers = draw(rng, rows * width);
            numbers[..width].fill(0.0);
            let x = Var::from_tensor(&Tensor::from_vec(numbers, (rows, width), &Device::Cpu).unwrap()).unwrap();
            let pull = Tensor::from_vec(draw(rng, rows * width), (rows, width), &Device::Cpu).unwrap();
            let through = |y: Tensor| {
                let gradients = (&y * &pull).unwrap().sum_all().unwrap().backward().unwrap();
                [y, gradients.get(&x).unwrap().clone()].map(|x| x.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            };
            // Along the first axis of the turned tensor: composed.
            let composed = l2_normalise_along(&x.t().unwrap(), 0).unwrap().t().unwrap();
            for (ours, wanted) in through(l2_normalise(&x).unwrap()).iter().zip(&through(composed)) {
                assert!(
                    ours.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 2e-6 * b.abs().max(1.0)),
                    "{rows} x {width}"
                );
            }
        }
    }
}
