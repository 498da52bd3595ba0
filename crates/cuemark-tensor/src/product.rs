//! Matrix products of tensors however they lie in memory.
//!
//! On a GPU, candle multiplies only what lies there row after row or column after column, also while it goes back through a
//! product; a column cut out of a wider tensor is refused. Here such a tensor is copied first.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp2, D, Layout, Result, Shape, Tensor};

/// Products on the last two axes.
pub trait MatrixProduct {
    /// `self · right`, with axes before the last two repeated where one side has none or only one.
    ///
    /// # Errors
    /// When the shapes do not fit.
    fn times(&self, right: &Tensor) -> Result<Tensor>;
}

impl MatrixProduct for Tensor {
    fn times(&self, right: &Tensor) -> Result<Tensor> {
        if right.rank() == 2 && self.rank() > 2 {
            // One matrix for all: their rows are rows of one product.
            let mut shape = self.dims().to_vec();
            let inner = self.dim(D::Minus1)?;
            if let Some(last) = shape.last_mut() {
                *last = right.dim(1)?;
            }
            return self.reshape(((), inner))?.times(right)?.reshape(shape);
        }
        if self.device().is_cpu() {
            return self.broadcast_matmul(right);
        }
        let (left, right) = alike(self, right)?;
        straight(&left)?.apply_op2(&straight(&right)?, Times)
    }
}

/// Both sides of a product with the same axes before the last two.
fn alike(left: &Tensor, right: &Tensor) -> Result<(Tensor, Tensor)> {
    let rank = left.rank().max(right.rank());
    let at = |x: &Tensor, axis: usize| (axis + x.rank()).checked_sub(rank).map_or(1, |axis| x.dims()[axis]);
    let before: Vec<usize> = (0..rank.saturating_sub(2)).map(|axis| at(left, axis).max(at(right, axis))).collect();
    let repeated = |x: &Tensor| {
        let own = &x.dims()[x.rank().saturating_sub(2)..];
        x.broadcast_as(before.iter().chain(own).copied().collect::<Vec<_>>())
    };
    Ok((repeated(left)?, repeated(right)?))
}

/// The tensor itself where a GPU can multiply it as it lies, else a copy.
fn straight(x: &Tensor) -> Result<Tensor> {
    let (dims, stride) = (x.dims(), x.stride());
    let [.., rows, columns] = *dims else { return x.contiguous() };
    let [.., row, column] = *stride else { return x.contiguous() };
    let fits = (column == 1 && row == columns) || (row == 1 && column == rows);
    let mut apart = rows * columns;
    let before = dims.iter().zip(stride).rev().skip(2);
    let dense = before.clone().all(|(size, stride)| {
        let fits = *stride == apart;
        apart *= size;
        fits
    });
    if fits && dense { Ok(x.clone()) } else { x.contiguous() }
}

/// The product itself: candle's own, with a gradient that does not ask how tensors lie.
struct Times;

/// Number of matrices, rows, columns and the length of what is summed.
fn sizes(left: &Layout, right: &Layout) -> Result<((usize, usize, usize, usize), Shape)> {
    let (left, right) = (left.dims(), right.dims());
    let ([before @ .., rows, inner], [.., columns]) = (left, right) else { candle_core::bail!("a product of vectors") };
    let shape: Vec<usize> = before.iter().copied().chain([*rows, *columns]).collect();
    Ok(((before.iter().product(), *rows, *columns, *inner), Shape::from(shape)))
}

impl CustomOp2 for Times {
    fn name(&self) -> &'static str {
        "matrix-product"
    }

    fn cpu_fwd(
        &self,
        left: &CpuStorage,
        left_layout: &Layout,
        right: &CpuStorage,
        right_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (sizes, shape) = sizes(left_layout, right_layout)?;
        Ok((left.matmul(right, sizes, left_layout, right_layout)?, shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        left: &candle_core::CudaStorage,
        left_layout: &Layout,
        right: &candle_core::CudaStorage,
        right_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let (sizes, shape) = sizes(left_layout, right_layout)?;
        Ok((left.matmul(right, sizes, left_layout, right_layout)?, shape))
    }

    fn bwd(
        &self,
        left: &Tensor,
        right: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = straight(gradient)?;
        let turned = |x: &Tensor| straight(&x.transpose(D::Minus1, D::Minus2)?);
        let of_left = gradient.apply_op2_no_bwd(&turned(right)?, &Self)?;
        let of_right = turned(left)?.apply_op2_no_bwd(&gradient, &Self)?;
        Ok((Some(of_left), Some(of_right)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    /// What a GPU does, on whatever there is.
    fn as_on_a_gpu(left: &Tensor, right: &Tensor) -> Tensor {
        let (left, right) = alike(left, right).unwrap();
        straight(&left).unwrap().apply_op2(&straight(&right).unwrap(), Times).unwrap()
    }

    fn draw(shape: &[usize], device: &Device) -> Var {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|n| (n as f32 * 0.7).sin()).collect();
        Var::from_tensor(&Tensor::from_vec(values, shape, device).unwrap()).unwrap()
    }

    /// Cut out of something wider, turned, repeated: forms that a GPU cannot multiply as they lie.
    fn cases(device: &Device) -> Vec<(Var, Var, Tensor, Tensor)> {
        let pair = |a: &[usize], b: &[usize]| (draw(a, device), draw(b, device));
        let (a, b) = pair(&[5, 9], &[4, 3]);
        let cut = (a.narrow(1, 2, 4).unwrap(), b.as_tensor().clone());
        let (c, d) = pair(&[6, 2, 5], &[7, 5]);
        let turned = (c.transpose(0, 1).unwrap(), d.t().unwrap());
        let (e, f) = pair(&[1, 3, 4], &[5, 4, 2]);
        let repeated = (e.as_tensor().clone(), f.as_tensor().clone());
        let (g, h) = pair(&[2, 3, 4, 6], &[2, 3, 6, 8]);
        let deep = (g.transpose(1, 2).unwrap().transpose(1, 2).unwrap(), h.narrow(3, 1, 5).unwrap());
        vec![(a, b, cut.0, cut.1), (c, d, turned.0, turned.1), (e, f, repeated.0, repeated.1), (g, h, deep.0, deep.1)]
    }

    fn through(parts: [&Var; 2], product: &Tensor) -> Vec<Vec<f32>> {
        // Turned, so that the gradient arrives in a form of its own.
        let loss = product.transpose(D::Minus1, D::Minus2).unwrap().sqr().unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let mut all = vec![flat(product)];
        all.extend(parts.iter().map(|var| flat(gradients.get(var.as_tensor()).unwrap())));
        all
    }

    #[test]
    fn products_and_gradients_are_candles_own() {
        for (a, b, left, right) in cases(&Device::Cpu) {
            let wanted = through([&a, &b], &left.broadcast_matmul(&right).unwrap());
            for product in [as_on_a_gpu(&left, &right), left.times(&right).unwrap()] {
                for (ours, wanted) in through([&a, &b], &product).iter().zip(&wanted) {
                    assert_eq!(ours.len(), wanted.len());
                    assert!(ours.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5));
                }
            }
        }
    }

    #[test]
    #[allow(clippy::print_stderr)] // says when it checks nothing
    fn a_gpu_takes_every_form() {
        let Ok(gpu) = Device::new_cuda(0) else {
            eprintln!("SKIPPED (no GPU): a_gpu_takes_every_form");
            return;
        };
        for ((a, b, left, right), (c, d, of_left, of_right)) in cases(&gpu).iter().zip(cases(&Device::Cpu)) {
            let ours = through([a, b], &left.times(right).unwrap());
            let wanted = through([&c, &d], &of_left.times(&of_right).unwrap());
            for (ours, wanted) in ours.iter().zip(&wanted) {
                assert!(ours.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4));
            }
        }
    }
}
