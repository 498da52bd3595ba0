//! Matrix products with PyTorch's default initialisation.

use candle_core::{Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::{Bend, Part};

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
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// `[outputs]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn bias_or_zeros(&self) -> Result<Tensor> {
        match &self.bias {
            Some(bias) => Ok(bias.clone()),
            None => Tensor::zeros(self.weight.dim(0)?, self.weight.dtype(), self.weight.device()),
        }
    }

    /// `max(0, x Wᵀ + b)`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward_relu(&self, x: &Tensor) -> Result<Tensor> {
        self.bent(x, Bend::Relu)
    }

    /// As one operation, with zeros where there are no biases: composed of candle's own it goes back through copies of its gradient.
    fn bent(&self, x: &Tensor, bend: Bend) -> Result<Tensor> {
        let whole = Part { first: 0, count: self.weight.dim(0)? };
        cuemark_tensor::linear(x, &self.weight, &self.bias_or_zeros()?, whole, bend)
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.bent(x, Bend::None)
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
