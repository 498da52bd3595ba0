//! What a branch gives, some of it dropped, added to what went past it: one pass over memory.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::Pass;
use crate::dropout::Dropout;
use crate::map::numbers;
use crate::vectorised;

/// Numbers that one task computes.
const BLOCK: usize = 1 << 14;

impl Pass {
    /// `x + dropout(branch)`, both of one shape; see [`Pass::dropout`].
    ///
    /// # Errors
    /// When the shapes differ.
    pub fn residual(&self, x: &Tensor, branch: &Tensor, p: f64) -> Result<Tensor> {
        match self.draw_dropout(p) {
            Some(dropout) if x.dtype() == DType::F32 && x.dims() == branch.dims() && x.elem_count() > 0 => {
                x.contiguous()?.apply_op2(&branch.contiguous()?, Residual(dropout))
            }
            Some(dropout) => x + dropout.apply(branch)?,
            None => x + branch,
        }
    }
}

pub(crate) struct Residual(pub(crate) Dropout);

impl CustomOp2 for Residual {
    fn name(&self) -> &'static str {
        "residual"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, b: &CpuStorage, of_b: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, branch) = (numbers(x, layout)?, numbers(b, of_b)?);
        let mut y = vec![0f32; x.len()];
        let blocks = y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).zip(branch.par_chunks(BLOCK));
        blocks.enumerate().for_each(|(block, ((y, x), branch))| {
            vectorised(
                #[inline(always)]
                || {
                    let places = (block * BLOCK) as u64..;
                    for (((y, x), branch), place) in y.iter_mut().zip(x).zip(branch).zip(places) {
                        *y = x + branch * self.0.factor(place);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
        branch: &candle_core::CudaStorage,
        branch_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::kernels::residual(self.0, (x, layout), (branch, branch_layout))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let of_branch = gradient.contiguous()?.apply_op1_no_bwd(&self.0)?;
        Ok((Some(gradient.clone()), Some(of_branch)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    #[test]
    fn it_is_the_sum_with_what_dropout_leaves_and_so_is_its_gradient() {
        let rng = &mut Rng::new(4);
        for count in [5, 2 * BLOCK + 3] {
            let (x, branch, pull) = (draw(rng, count), draw(rng, count), draw(rng, count));
            let dropout = Pass::training(0, 1, Rng::new(2)).draw_dropout(0.3).unwrap();
            let factor = |n: usize| f64::from(dropout.factor(n as u64));
            let y: Vec<f64> = (0..count).map(|n| f64::from(x[n]) + f64::from(branch[n]) * factor(n)).collect();
            let of_x: Vec<f64> = pull.iter().map(|g| f64::from(*g)).collect();
            let of_branch: Vec<f64> = (0..count).map(|n| f64::from(pull[n]) * factor(n)).collect();
            for device in devices() {
                let var =
                    |values: &[f32]| Var::from_tensor(&Tensor::from_slice(values, count, &device).unwrap()).unwrap();
                let (x, branch) = (var(&x), var(&branch));
                let found = Pass::training(0, 1, Rng::new(2)).residual(&x, &branch, 0.3).unwrap();
                let pull = Tensor::from_slice(&pull, count, &device).unwrap();
                let gradients = (&found * pull).unwrap().sum_all().unwrap().backward().unwrap();
                let what = format!("{count} on {device:?}");
                assert_close(&found, &y, 1e-6, &what);
                assert_close(gradients.get(&x).unwrap(), &of_x, 1e-6, &what);
                assert_close(gradients.get(&branch).unwrap(), &of_branch, 1e-6, &what);
            }
        }
    }

    #[test]
    fn while_answering_it_is_the_plain_sum() {
        let x = Tensor::ones((2, 3), DType::F32, &candle_core::Device::Cpu).unwrap();
        let sum = Pass::answering().residual(&x, &x, 0.5).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(sum, [[2.0; 3]; 2]);
    }
}
