//! Convolutions along time on channels-last input, and 1×1 convolutions as the matrix products they are.
//!
//! Written as a gather and a product: with a stride of 2, candle's own convolution gave gradients that are not the reference's.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::MatrixProduct as _;

use super::{Linear, uniform};

/// A convolution over `[batch, time, channels]`; the weight is stored as PyTorch stores it, `[outputs, inputs / groups, kernel]`.
#[derive(Debug, Clone)]
pub struct Conv1d {
    weight: Tensor,
    bias: Option<Tensor>,
    steps: Steps,
}

/// How a kernel moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Zeros added on either side. Default: 0
    pub padding: usize,
    /// Steps between outputs. Default: 1
    pub stride: usize,
    /// Steps between the inputs of one output. Default: 1
    pub dilation: usize,
    /// Channels are split into this many independent parts. Default: 1
    pub groups: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self { padding: 0, stride: 1, dilation: 1, groups: 1 }
    }
}

impl Conv1d {
    /// With bias.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(inputs: usize, outputs: usize, kernel: usize, steps: Steps, vb: VarBuilder) -> Result<Self> {
        let fan = uniform(inputs / steps.groups * kernel);
        let bias = Some(vb.get_with_hints(outputs, "bias", fan)?);
        Ok(Self { bias, ..Self::without_bias(inputs, outputs, kernel, steps, vb)? })
    }

    /// Without bias.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn without_bias(inputs: usize, outputs: usize, kernel: usize, steps: Steps, vb: VarBuilder) -> Result<Self> {
        let fan = inputs / steps.groups * kernel;
        let weight = vb.get_with_hints((outputs, inputs / steps.groups, kernel), "weight", uniform(fan))?;
        Ok(Self { weight, bias: None, steps })
    }

    /// From a weight `[outputs, inputs / groups, kernel]` that the reference stores in another shape.
    pub fn of(weight: Tensor, bias: Option<Tensor>, steps: Steps) -> Self {
        Self { weight, bias, steps }
    }

    /// # Shapes
    /// - x `[batch, time, inputs]`
    /// - returns `[batch, (time + 2 padding - dilation (kernel - 1) - 1) / stride + 1, outputs]`
    ///
    /// # Errors
    /// When the input is shorter than the kernel.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Steps { padding, stride, dilation, groups } = self.steps;
        let (outputs, inputs, kernel) = self.weight.dims3()?;
        let x = if padding > 0 { x.pad_with_zeros(1, padding, padding)? } else { x.clone() };
        let (batch, time, _) = x.dims3()?;
        let reach = dilation * (kernel - 1) + 1;
        if time < reach {
            candle_core::bail!("{time} steps are too few for a kernel that spans {reach}");
        }
        let length = (time - reach) / stride + 1;
        let pieces =
            (0..kernel).map(|place| every(&x, place * dilation, stride, length)).collect::<Result<Vec<_>>>()?;
        let windows = Tensor::stack(&pieces, 2)?; // [batch, length, kernel, channels]
        let y = if groups == 1 {
            let weight = self.weight.permute((2, 1, 0))?.reshape((kernel * inputs, outputs))?;
            windows.reshape((batch * length, kernel * inputs))?.times(&weight)?
        } else {
            let windows = windows.reshape((batch * length, kernel, groups, inputs))?;
            let windows = windows.permute((2, 0, 1, 3))?.reshape((groups, batch * length, kernel * inputs))?;
            let weight = self.weight.reshape((groups, outputs / groups, inputs, kernel))?;
            let weight = weight.permute((0, 3, 2, 1))?.reshape((groups, kernel * inputs, outputs / groups))?;
            windows.times(&weight)?.transpose(0, 1)?.reshape((batch * length, outputs))?
        };
        let y = match &self.bias {
            Some(bias) => y.broadcast_add(bias)?,
            None => y,
        };
        y.reshape((batch, length, outputs))
    }
}

/// Every `stride`-th step from `first` on, `length` of them.
fn every(x: &Tensor, first: usize, stride: usize, length: usize) -> Result<Tensor> {
    if stride == 1 {
        return x.narrow(1, first, length);
    }
    let steps: Vec<u32> = (0..length).map(|step| (first + step * stride) as u32).collect();
    x.contiguous()?.index_select(&Tensor::new(steps, x.device())?, 1)
}

/// A convolution of kernel 1 over `axes` axes (1 for time, 2 for a map), stored as the reference stores it and applied to
/// the last axis of channels-last input.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn pointwise(inputs: usize, outputs: usize, axes: usize, vb: VarBuilder) -> Result<Linear> {
    let shape: Vec<usize> = [outputs, inputs].into_iter().chain(std::iter::repeat_n(1, axes)).collect();
    let weight = vb.get_with_hints(shape, "weight", uniform(inputs))?.reshape((outputs, inputs))?;
    let bias = vb.get_with_hints(outputs, "bias", uniform(inputs))?;
    Ok(Linear::new(weight, Some(bias)))
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params, Var};

    use super::*;

    fn conv(steps: Steps) -> Conv1d {
        Conv1d::new(4, 6, 3, steps, Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn values_are_those_of_a_plain_convolution() {
        let x = Tensor::arange(0f32, 56.0, &Device::Cpu).unwrap().reshape((2, 7, 4)).unwrap().sin().unwrap();
        for steps in [
            Steps::default(),
            Steps { padding: 1, ..Steps::default() },
            Steps { stride: 2, ..Steps::default() },
            Steps { padding: 2, dilation: 2, ..Steps::default() },
            Steps { padding: 1, groups: 2, ..Steps::default() },
        ] {
            let conv = conv(steps);
            let plain = x.transpose(1, 2).unwrap().contiguous().unwrap();
            let plain = plain.conv1d(&conv.weight, steps.padding, steps.stride, steps.dilation, steps.groups).unwrap();
            let plain = plain.broadcast_add(&conv.bias.as_ref().unwrap().reshape((1, 6, 1)).unwrap()).unwrap();
            let gap = (conv.forward(&x).unwrap() - plain.transpose(1, 2).unwrap()).unwrap().abs().unwrap();
            assert!(gap.max_all().unwrap().to_scalar::<f32>().unwrap() < 1e-5, "{steps:?}");
        }
    }

    #[test]
    fn gradients_are_those_of_small_steps() {
        let conv = conv(Steps { stride: 2, padding: 1, groups: 2, ..Steps::default() });
        let values: Vec<f32> = (0..56).map(|n| (n as f32 * 0.7).sin()).collect();
        let at = |values: &[f32]| {
            let x = Var::from_slice(values, (2, 7, 4), &Device::Cpu).unwrap();
            let y = conv.forward(x.as_tensor()).unwrap().sqr().unwrap().sum_all().unwrap();
            (x, y)
        };
        let (x, y) = at(&values);
        let grads = y.backward().unwrap();
        let grad = grads.get(x.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for place in [0, 13, 55] {
            let (mut up, mut down) = (values.clone(), values.clone());
            up[place] += 1e-2;
            down[place] -= 1e-2;
            let value = |values: &[f32]| at(values).1.to_scalar::<f32>().unwrap();
            let slope = (value(&up) - value(&down)) / 2e-2;
            assert!((slope - grad[place]).abs() < 2e-2, "{slope} {}", grad[place]);
        }
    }
}
