//! What both halves are made of.

use candle_core::Tensor;
use cuemark_tensor::MatrixProduct as _;

use crate::Result;
use crate::numeric::gelu;
use crate::weights::Tensors;

/// `x Wᵀ + b`.
pub(super) struct Linear {
    /// `[inputs, outputs]`, a view of what the file has the other way round.
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub(super) fn new(tensors: &mut Tensors, name: &str, outputs: usize, inputs: usize) -> Result<Self> {
        let weight = tensors.take(&format!("{name}/weight"), &[outputs, inputs])?.t()?;
        Ok(Self { weight, bias: tensors.take(&format!("{name}/bias"), &[outputs])? })
    }

    /// # Shapes
    /// - x `[rows, inputs]`, returns `[rows, outputs]`
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.times(&self.weight)?.broadcast_add(&self.bias)?)
    }
}

/// Normalises every row.
pub(super) struct Norm {
    gamma: Tensor,
    beta: Tensor,
}

impl Norm {
    pub(super) fn new(tensors: &mut Tensors, name: &str, width: usize) -> Result<Self> {
        let gamma = tensors.take(&format!("{name}/gamma"), &[width])?;
        Ok(Self { gamma, beta: tensors.take(&format!("{name}/beta"), &[width])? })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(candle_nn::ops::layer_norm(x, &self.gamma, &self.beta, 1e-5)?)
    }
}

/// Two layers with a unit between them, added to what came in.
pub(super) struct FeedForward {
    norm: Norm,
    widen: Linear,
    narrow: Linear,
}

impl FeedForward {
    pub(super) fn new(tensors: &mut Tensors, name: &str, width: usize) -> Result<Self> {
        let [inner, _] = tensors.shape(&format!("{name}/linear_0/weight"))?;
        Ok(Self {
            norm: Norm::new(tensors, &format!("{name}/layer_norm"), width)?,
            widen: Linear::new(tensors, &format!("{name}/linear_0"), inner, width)?,
            narrow: Linear::new(tensors, &format!("{name}/linear_1"), width, inner)?,
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let wide = gelu(self.widen.forward(&self.norm.forward(x)?)?)?;
        Ok((x + self.narrow.forward(&wide)?)?)
    }
}

/// Columns `part` of `parts` of `x [rows, parts * width]`, by heads: `[heads, rows, width / heads]`.
pub(super) fn heads_of(x: &Tensor, part: usize, width: usize, heads: usize) -> Result<Tensor> {
    let rows = x.dim(0)?;
    Ok(x.narrow(1, part * width, width)?.reshape((rows, heads, width / heads))?.transpose(0, 1)?.contiguous()?)
}

/// `[heads, rows, width / heads]` side by side again: `[rows, width]`.
pub(super) fn joined(x: &Tensor) -> Result<Tensor> {
    let (heads, rows, width) = x.dims3()?;
    Ok(x.transpose(0, 1)?.contiguous()?.reshape((rows, heads * width))?)
}
