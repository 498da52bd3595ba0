//! Matrix products with PyTorch's default initialisation.

use candle_core::Result;
use candle_nn::{Linear, VarBuilder};

use super::uniform;

/// `x Wᵀ + b` on the last axis.
///
/// # Errors
/// When a parameter is missing or misshaped.
#[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
pub fn linear(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    let weight = vb.get_with_hints((outputs, inputs), "weight", uniform(inputs))?;
    let bias = vb.get_with_hints(outputs, "bias", uniform(inputs))?;
    Ok(Linear::new(weight, Some(bias)))
}

/// `x Wᵀ` on the last axis.
///
/// # Errors
/// When a parameter is missing or misshaped.
#[allow(clippy::needless_pass_by_value)] // as above
pub fn linear_no_bias(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    Ok(Linear::new(vb.get_with_hints((outputs, inputs), "weight", uniform(inputs))?, None))
}
