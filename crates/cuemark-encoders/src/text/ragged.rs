//! Operations on sentences of different lengths that lie one after the other, `[tokens, width]`, without padding.
//!
//! On the CPU each is one pass over memory; on a GPU they are composed of candle's operations, attention by runs of sentences
//! of equal length.

use candle_core::{CpuStorage, CustomOp1, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::config::Activation;
use super::rows::{self, Norm, Room};

/// Rows that one task computes.
const BLOCK_ROWS: usize = 16;

/// `activation(x + bias)` for `x [tokens, width]`; `x` is used up.
pub(super) fn activate(x: Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    if x.device().is_cpu() {
        x.inplace_op2(bias, &Activate(activation))?;
        return Ok(x);
    }
    let x = x.broadcast_add(bias)?;
    match activation {
        Activation::Gelu => x.gelu_erf(),
        Activation::Relu => x.relu(),
    }
}

/// `norm(x + bias + residual)` for `x` and `residual` `[tokens, width]` and `parameters [3, width]`: bias, gain, shift. `x` is
/// used up.
pub(super) fn add_norm(x: Tensor, residual: &Tensor, parameters: &Tensor, epsilon: f64) -> Result<Tensor> {
    if x.device().is_cpu() {
        x.inplace_op3(residual, parameters, &AddNorm { epsilon: epsilon as f32 })?;
        return Ok(x);
    }
    let row = |number: usize| parameters.narrow(0, number, 1)?.squeeze(0);
    let x = (x.broadcast_add(&row(0)?)? + residual)?;
    candle_nn::ops::layer_norm(&x, &row(1)?, &row(2)?, epsilon as f32)
}

/// Attention inside every sentence: `qkv [tokens, 3 width]` and its bias to `[tokens, width]`.
pub(super) fn attention(qkv: &Tensor, bias: &Tensor, heads: usize, lengths: &[usize]) -> Result<Tensor> {
    if qkv.device().is_cpu() {
        let bias = bias.to_vec1::<f32>()?;
        return qkv.apply_op1_no_bwd(&Attention { bias, heads, lengths: lengths.to_vec() });
    }
    let qkv = qkv.broadcast_add(bias)?;
    let (mut parts, mut start) = (Vec::new(), 0);
    for run in lengths.chunk_by(|a, b| a == b) {
        let (sentences, tokens) = (run.len(), run.first().copied().unwrap_or(0));
        parts.push(uniform_attention(&qkv.narrow(0, start, sentences * tokens)?, sentences, tokens, heads)?);
        start += sentences * tokens;
    }
    Tensor::cat(&parts, 0)
}

fn uniform_attention(qkv: &Tensor, sentences: usize, tokens: usize, heads: usize) -> Result<Tensor> {
    let width = qkv.dim(1)? / 3;
    let head_width = width / heads;
    let part = |number: usize| {
        let part = qkv.narrow(1, number * width, width)?.reshape((sentences, tokens, heads, head_width))?;
        part.transpose(1, 2)?.contiguous()
    };
    let scores = (part(0)?.matmul(&part(1)?.t()?)? / (head_width as f64).sqrt())?;
    let context = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&part(2)?)?;
    context.transpose(1, 2)?.reshape((sentences * tokens, width))
}

/// The numbers of a tensor without gaps.
fn numbers<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("a tensor with gaps") };
    Ok(&storage.as_slice::<f32>()?[start..end])
}

/// The same, to be written.
fn numbers_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("a tensor with gaps") };
    match storage {
        CpuStorage::F32(values) => Ok(&mut values[start..end]),
        _ => bail!("not single precision"),
    }
}

struct Activate(Activation);

impl InplaceOp2 for Activate {
    fn name(&self) -> &'static str {
        "bias-activation"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, of_x: &Layout, bias: &CpuStorage, of_bias: &Layout) -> Result<()> {
        let (x, bias) = (numbers_mut(x, of_x)?, numbers(bias, of_bias)?);
        x.par_chunks_mut(BLOCK_ROWS * bias.len().max(1)).for_each(|rows| match self.0 {
            Activation::Gelu => rows::bias_gelu(rows, bias),
            Activation::Relu => rows::bias_relu(rows, bias),
        });
        Ok(())
    }
}

struct AddNorm {
    epsilon: f32,
}

impl InplaceOp3 for AddNorm {
    fn name(&self) -> &'static str {
        "residual-norm"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        of_x: &Layout,
        residual: &CpuStorage,
        of_residual: &Layout,
        parameters: &CpuStorage,
        of_parameters: &Layout,
    ) -> Result<()> {
        let (x, residual) = (numbers_mut(x, of_x)?, numbers(residual, of_residual)?);
        let parameters = numbers(parameters, of_parameters)?;
        let width = (parameters.len() / 3).max(1);
        let [bias, gain, shift] =
            [0, 1, 2].map(|row| parameters.get(row * width..(row + 1) * width).unwrap_or_default());
        let norm = Norm { bias, gain, shift, epsilon: self.epsilon };
        let block = BLOCK_ROWS * width;
        x.par_chunks_mut(block).zip(residual.par_chunks(block)).for_each(|(x, residual)| {
            rows::add_norm(x, residual, norm);
        });
        Ok(())
    }
}

struct Attention {
    bias: Vec<f32>,
    heads: usize,
    lengths: Vec<usize>,
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "ragged-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let qkv = numbers(qkv, layout)?;
        let width = self.bias.len() / 3;
        let tokens: usize = self.lengths.iter().sum();
        if qkv.len() != tokens * 3 * width {
            bail!("{} numbers are not those of {tokens} tokens", qkv.len());
        }
        let mut context = vec![0f32; tokens * width];
        let mut jobs = Vec::with_capacity(self.lengths.len());
        let (mut from, mut to) = (qkv, context.as_mut_slice());
        for length in &self.lengths {
            let (sentence, from_rest) = from.split_at(length * 3 * width);
            let (out, to_rest) = to.split_at_mut(length * width);
            jobs.push((sentence, out));
            (from, to) = (from_rest, to_rest);
        }
        jobs.into_par_iter().for_each_init(Room::default, |room, (sentence, out)| {
            rows::attend(sentence, &self.bias, self.heads, out, room);
        });
        Ok((CpuStorage::F32(context), Shape::from((tokens, width))))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use cuemark_core::Rng;

    use super::*;

    fn draw(rng: &mut Rng, shape: (usize, usize)) -> Tensor {
        let values: Vec<f32> = (0..shape.0 * shape.1).map(|_| rng.normal() as f32).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    fn farthest(a: &Tensor, b: &Tensor) -> f32 {
        (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
    }

    #[test]
    fn attention_in_one_pass_is_that_of_candles_operations() {
        let (mut rng, heads, width) = (Rng::new(1), 4, 24);
        let lengths = [1, 3, 3, 17, 40];
        let (qkv, bias) = (draw(&mut rng, (64, 3 * width)), draw(&mut rng, (1, 3 * width)).squeeze(0).unwrap());
        let ours = attention(&qkv, &bias, heads, &lengths).unwrap();
        let qkv = qkv.broadcast_add(&bias).unwrap();
        let (mut start, mut parts) = (0, Vec::new());
        for length in lengths {
            parts.push(uniform_attention(&qkv.narrow(0, start, length).unwrap(), 1, length, heads).unwrap());
            start += length;
        }
        assert!(farthest(&ours, &Tensor::cat(&parts, 0).unwrap()) < 1e-5);
    }

    #[test]
    fn activations_and_norms_are_those_of_candles_operations() {
        let mut rng = Rng::new(2);
        let (x, residual) = (draw(&mut rng, (37, 40)), draw(&mut rng, (37, 40)));
        let parameters = draw(&mut rng, (3, 40));
        let bias = parameters.narrow(0, 0, 1).unwrap().squeeze(0).unwrap();
        let biased = x.broadcast_add(&bias).unwrap();
        let gelu = activate(x.copy().unwrap(), &bias, Activation::Gelu).unwrap();
        assert!(farthest(&gelu, &biased.gelu_erf().unwrap()) < 1e-6);
        let relu = activate(x.copy().unwrap(), &bias, Activation::Relu).unwrap();
        assert!(farthest(&relu, &biased.relu().unwrap()) < 1e-6);
        let row = |number: usize| parameters.narrow(0, number, 1).unwrap().squeeze(0).unwrap();
        let theirs = candle_nn::ops::layer_norm(&(biased + &residual).unwrap(), &row(1), &row(2), 1e-12).unwrap();
        assert!(farthest(&add_norm(x, &residual, &parameters, 1e-12).unwrap(), &theirs) < 1e-5);
    }
}
