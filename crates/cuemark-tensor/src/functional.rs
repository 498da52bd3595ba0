//! Composed operations with a gradient, where candle's own have none or are not numerically safe.

use candle_core::{D, DType, Result, Tensor};

use crate::MatrixProduct as _;
use crate::unit_rows::{LEAST_SQUARE, unit_rows};

pub use candle_nn::ops::{log_softmax, sigmoid};

pub use crate::gelu::gelu;
pub use crate::prelu::prelu;
pub use crate::softmax::softmax;

/// `x / max(‖x‖₂, 1e-12)` along the last axis, as PyTorch's `normalize` does.
///
/// # Errors
/// Those of the tensor operations.
pub fn l2_normalise(x: &Tensor) -> Result<Tensor> {
    if x.device().is_cpu() && x.dtype() == DType::F32 && x.elem_count() > 0 {
        return unit_rows(x);
    }
    l2_normalise_along(x, x.rank() - 1)
}

/// As [`l2_normalise`], along `axis`.
///
/// # Errors
/// Those of the tensor operations.
pub fn l2_normalise_along(x: &Tensor, axis: usize) -> Result<Tensor> {
    // The root's gradient is infinite at 0: the square is clamped before the root, not the norm after it.
    let norm = x.sqr()?.sum_keepdim(axis)?.maximum(f64::from(LEAST_SQUARE))?.sqrt()?;
    x.broadcast_div(&norm)
}

/// `softplus(x) = log(1 + exp(x))` without overflow.
///
/// # Errors
/// Those of the tensor operations.
pub fn softplus(x: &Tensor) -> Result<Tensor> {
    let tail = (x.abs()?.neg()?.exp()? + 1.0)?.log()?;
    x.relu()? + tail
}

/// Binary cross entropy of each logit with a target in 0..1, the value PyTorch's `binary_cross_entropy_with_logits` has per element.
///
/// # Errors
/// Those of the tensor operations.
pub fn bce_with_logits(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    softplus(logits)? - logits.mul(targets)?
}

/// Replaces values where `keep` (0 or 1, broadcast) is 0 by `value`; no gradient flows through the replaced ones.
///
/// # Errors
/// Those of the tensor operations.
pub fn mask_out(x: &Tensor, keep: &Tensor, value: f64) -> Result<Tensor> {
    let kept = x.broadcast_mul(keep)?;
    kept.broadcast_add(&keep.affine(-value, value)?)
}

/// Mean over the entries where `mask` (0 or 1, broadcast) is 1, along `axis`, which disappears; 0 where there is none.
///
/// # Errors
/// Those of the tensor operations.
pub fn masked_mean(x: &Tensor, mask: &Tensor, axis: usize) -> Result<Tensor> {
    let total = x.broadcast_mul(mask)?.sum(axis)?;
    let count = mask.sum(axis)?.maximum(1.0)?;
    total.broadcast_div(&count)
}

/// Cosine of the angle between the rows of `a [n, d]` and of `b [m, d]`: `[n, m]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn cosine(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    l2_normalise(a)?.times(&l2_normalise(b)?.t()?)
}

/// `softmax(q kᵀ / √d) v` over the last two axes; `bias`, when given, is added to the logits before the softmax.
///
/// # Shapes
/// - q `[.., queries, d]`, k `[.., keys, d]`, v `[.., keys, e]`, bias broadcast to `[.., queries, keys]`
/// - returns `[.., queries, e]` and the weights `[.., queries, keys]`
///
/// # Errors
/// Those of the tensor operations.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, bias: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
    let width = q.dim(D::Minus1)? as f64;
    let logits = (q.contiguous()?.times(&k.t()?.contiguous()?)? * width.sqrt().recip())?;
    let logits = match bias {
        Some(bias) => logits.broadcast_add(bias)?,
        None => logits,
    };
    let weights = softmax(&logits, D::Minus1)?;
    Ok((weights.times(&v.contiguous()?)?, weights))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn the_gradient_at_a_zero_vector_is_finite() {
        let x = Var::zeros((2, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let grads = l2_normalise(x.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
        let grad = grads.get(x.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(grad.iter().all(|value| value.is_finite()), "{grad:?}");
    }

    #[test]
    fn cross_entropy_is_right_by_hand_and_survives_large_logits() {
        let logits = Tensor::new(&[0f32, 100.0, -100.0, 2.0], &Device::Cpu).unwrap();
        let targets = Tensor::new(&[0.5f32, 1.0, 1.0, 0.25], &Device::Cpu).unwrap();
        let loss = bce_with_logits(&logits, &targets).unwrap().to_vec1::<f32>().unwrap();
        let last = (1.0 + 2f32.exp()).ln() - 0.5;
        for (ours, by_hand) in loss.iter().zip([2f32.ln(), 0.0, 100.0, last]) {
            assert!((ours - by_hand).abs() < 1e-5, "{loss:?}");
        }
    }

    #[test]
    fn masked_entries_pass_no_gradient() {
        let x = Var::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        let keep = Tensor::new(&[1f32, 0.0], &Device::Cpu).unwrap();
        let masked = mask_out(x.as_tensor(), &keep, -1e9).unwrap();
        assert_eq!(masked.to_vec1::<f32>().unwrap(), [1.0, -1e9]);
        let grads = masked.sum_all().unwrap().backward().unwrap();
        assert_eq!(grads.get(x.as_tensor()).unwrap().to_vec1::<f32>().unwrap(), [1.0, 0.0]);
    }
}
