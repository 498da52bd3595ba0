//! Matrix products with PyTorch's default initialisation.

use candle_core::{Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;

use super::uniform;

/// `x Wᵀ + b` on the last axis of anything, however it lies in memory.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    /// With weights `[outputs, inputs]` and biases `[outputs]`.
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self { weight, bias }
    }

    /// `[outputs, inputs]`.
    #[cfg(test)]
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let product = x.times(&self.weight.t()?)?;
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }
}

/// `x Wᵀ + b` on the last axis.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn linear(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    let weight = vb.get_with_hints((outputs, inputs), "weight", uniform(inputs))?;
    let bias = vb.get_with_hints(outputs, "bias", uniform(inputs))?;
    Ok(Linear::new(weight, Some(bias)))
}

/// `x Wᵀ` on the last axis.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn linear_no_bias(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    Ok(Linear::new(vb.get_with_hints((outputs, inputs), "weight", uniform(inputs))?, None))
}
