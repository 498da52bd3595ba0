//! Layer norm with a gradient: candle's own has none on contiguous input.

use candle_core::{Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};

/// `(x - mean) / sqrt(var + eps) * weight + bias` along the last axis, variance divided by the width.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    /// Over `width` values.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(width: usize, eps: f64, vb: VarBuilder) -> Result<Self> {
        let weight = vb.get_with_hints(width, "weight", Init::Const(1.0))?;
        let bias = vb.get_with_hints(width, "bias", Init::Const(0.0))?;
        Ok(Self { weight, bias, eps })
    }
}

impl Module for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        cuemark_tensor::layer_norm(x, &self.weight, &self.bias, self.eps)
    }
}
