//! The half that hears.

use candle_core::Tensor;
use cuemark_tensor::MatrixProduct as _;

use super::layers::{FeedForward, Linear, Norm, heads_of, joined};
use crate::Result;
use crate::numeric::{gelu, softmax};
use crate::weights::Tensors;

/// Query rows that look at the whole window at once: their weights stay in the cache until they are used.
const ROWS: usize = 250;

/// Two convolutions over time, the second at half the rate, and layers that look at the whole window.
pub(crate) struct Encoder {
    first: Convolution,
    second: Convolution,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
    bands: usize,
    steps: usize,
}

struct Layer {
    norm: Norm,
    /// Query, key and value side by side.
    project: Linear,
    out: Linear,
    feed: FeedForward,
    heads: usize,
    width: usize,
}

/// A convolution of three steps as one product.
struct Convolution {
    /// `[3 * inputs, outputs]`: the step before, this one, the one after.
    weight: Tensor,
    bias: Tensor,
}

impl Encoder {
    pub(super) fn new(tensors: &mut Tensors) -> Result<Self> {
        let [width, bands, _] = tensors.shape("encoder/conv1/weight")?;
        let [steps, _] = tensors.shape("encoder/position_encodings/encodings")?;
        let heads = tensors.number("encoder/num_heads")?;
        let count = tensors.layers("encoder");
        if count == 0 || !width.is_multiple_of(heads) || bands == 0 || steps == 0 {
            return Err(tensors.fault(format!("{count} layers of width {width} with {heads} heads")));
        }
        Ok(Self {
            first: Convolution::new(tensors, "encoder/conv1", width, bands)?,
            second: Convolution::new(tensors, "encoder/conv2", width, width)?,
            positions: tensors.take("encoder/position_encodings/encodings", &[steps, width])?,
            layers: (0..count).map(|layer| Layer::new(tensors, layer, width, heads)).collect::<Result<_>>()?,
            norm: Norm::new(tensors, "encoder/layer_norm", width)?,
            bands,
            steps,
        })
    }

    /// How many bands it wants.
    pub(crate) fn bands(&self) -> usize {
        self.bands
    }

    /// How many frames of bands it wants: 3,000, half a minute.
    pub(crate) fn frames(&self) -> usize {
        2 * self.steps
    }

    /// # Shapes
    /// - bands `[frames, bands]`, returns `[frames / 2, width]`
    pub(super) fn forward(&self, bands: &Tensor) -> Result<Tensor> {
        let x = gelu(self.first.forward(bands)?)?;
        let x = gelu(self.second.forward_halved(&x)?)?;
        let mut x = (x + &self.positions)?;
        for layer in &self.layers {
            x = layer.forward(&x)?;
        }
        self.norm.forward(&x)
    }
}

impl Layer {
    fn new(tensors: &mut Tensors, layer: usize, width: usize, heads: usize) -> Result<Self> {
        let name = format!("encoder/layer_{layer}");
        Ok(Self {
            norm: Norm::new(tensors, &format!("{name}/self_attention/layer_norm"), width)?,
            project: Linear::new(tensors, &format!("{name}/self_attention/linear_0"), 3 * width, width)?,
            out: Linear::new(tensors, &format!("{name}/self_attention/linear_1"), width, width)?,
            feed: FeedForward::new(tensors, &format!("{name}/ffn"), width)?,
            heads,
            width,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let projected = self.project.forward(&self.norm.forward(x)?)?;
        let of = |part| heads_of(&projected, part, self.width, self.heads);
        let scale = ((self.width / self.heads) as f64).powf(-0.5);
        let (query, key, value) = ((of(0)? * scale)?, of(1)?, of(2)?);
        let mut heads = Vec::with_capacity(self.heads);
        for head in 0..self.heads {
            let (query, key, value) = (query.get(head)?, key.get(head)?.t()?, value.get(head)?);
            let rows = query.dim(0)?;
            let seen = (0..rows).step_by(ROWS).map(|row| {
                let query = query.narrow(0, row, ROWS.min(rows - row))?;
                softmax(query.times(&key)?)?.times(&value)
            });
            heads.push(Tensor::cat(&seen.collect::<candle_core::Result<Vec<_>>>()?, 0)?);
        }
        let x = (x + self.out.forward(&joined(&Tensor::stack(&heads, 0)?)?)?)?;
        self.feed.forward(&x)
    }
}

impl Convolution {
    fn new(tensors: &mut Tensors, name: &str, outputs: usize, inputs: usize) -> Result<Self> {
        let weight = tensors.take(&format!("{name}/weight"), &[outputs, inputs, 3])?;
        let weight = weight.permute((2, 1, 0))?.contiguous()?.reshape((3 * inputs, outputs))?;
        Ok(Self { weight, bias: tensors.take(&format!("{name}/bias"), &[outputs])? })
    }

    /// Three neighbours side by side for every step: `[steps, 3 * inputs]`.
    fn neighbours(x: &Tensor) -> Result<[Tensor; 3]> {
        let steps = x.dim(0)?;
        let padded = x.pad_with_zeros(0, 1, 1)?;
        Ok([padded.narrow(0, 0, steps)?, padded.narrow(0, 1, steps)?, padded.narrow(0, 2, steps)?])
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let around = Tensor::cat(&Self::neighbours(x)?, 1)?;
        Ok(around.times(&self.weight)?.broadcast_add(&self.bias)?)
    }

    /// The same at every other step.
    fn forward_halved(&self, x: &Tensor) -> Result<Tensor> {
        let (steps, inputs) = x.dims2()?;
        let even = |x: Tensor| x.contiguous()?.reshape((steps / 2, 2, inputs))?.narrow(1, 0, 1)?.squeeze(1);
        let [before, at, after] = Self::neighbours(x)?;
        let around = Tensor::cat(&[even(before)?, even(at)?, even(after)?], 1)?;
        Ok(around.times(&self.weight)?.broadcast_add(&self.bias)?)
    }
}
