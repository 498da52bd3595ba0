//! Blocks of the dual encoders that began with XML: ReLoCLNet, MS-SL and CONQUER are built from them too.
//!
//! Weights start as BERT's do: normal with deviation 0.02, biases 0.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, softmax};

use super::{LayerNorm, Linear};

/// What layer norms of the family add to the variance.
const EPS: f64 = 1e-5;
/// What is added to the logit of a key that is not there.
const NO_KEY: f64 = -10_000.0;
/// What replaces the score of a word or clip that is not there.
pub const NOT_THERE: f64 = -1e10;
const INIT: Init = Init::Randn { mean: 0.0, stdev: 0.02 };

/// `x Wᵀ + b` with BERT's initialisation.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn bert_linear(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    let bias = vb.get_with_hints(outputs, "bias", Init::Const(0.0))?;
    Ok(Linear::new(vb.get_with_hints((outputs, inputs), "weight", INIT)?, Some(bias)))
}

/// `x Wᵀ` with BERT's initialisation.
///
/// # Errors
/// When a parameter is missing or misshaped.
pub fn bert_linear_no_bias(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Linear> {
    Ok(Linear::new(vb.get_with_hints((outputs, inputs), "weight", INIT)?, None))
}

/// A table of vectors, `[rows, width]`, with BERT's initialisation, stored as `weight`.
///
/// # Errors
/// When the parameter is missing or misshaped.
pub fn bert_table(rows: usize, width: usize, vb: VarBuilder) -> Result<Tensor> {
    vb.get_with_hints((rows, width), "weight", INIT)
}

/// Layer norm, dropout, linear, ReLU: how features of any width enter.
#[derive(Debug, Clone)]
pub struct InputProjection {
    norm: LayerNorm,
    project: Linear,
    dropout: f64,
}

impl InputProjection {
    /// From `inputs` to `hidden` channels, parameters under `LayerNorm` and `net.1`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(inputs: usize, hidden: usize, dropout: f64, vb: VarBuilder) -> Result<Self> {
        let norm = LayerNorm::new(inputs, EPS, vb.pp("LayerNorm"))?;
        Ok(Self { norm, project: bert_linear(inputs, hidden, vb.pp("net.1"))?, dropout })
    }

    /// # Shapes
    /// - x `[.., inputs]`; returns `[.., hidden]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.project.forward(&pass.dropout(&self.norm.forward(x)?, self.dropout)?)?.relu()
    }
}

/// Adds a learnt vector per position, then layer norm and dropout.
#[derive(Debug, Clone)]
pub struct Positions {
    table: Tensor,
    norm: LayerNorm,
    dropout: f64,
}

impl Positions {
    /// For sequences of at most `rows` steps, parameters under `position_embeddings` and `LayerNorm`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(rows: usize, hidden: usize, dropout: f64, vb: VarBuilder) -> Result<Self> {
        let table = bert_table(rows, hidden, vb.pp("position_embeddings"))?;
        Ok(Self { table, norm: LayerNorm::new(hidden, EPS, vb.pp("LayerNorm"))?, dropout })
    }

    /// # Shapes
    /// - x `[batch, steps, hidden]`, at most as many steps as the table has rows; returns the same
    ///
    /// # Errors
    /// When there are more steps than rows.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        let x = x.broadcast_add(&self.table.narrow(0, 0, x.dim(1)?)?)?;
        pass.dropout(&self.norm.forward(&x)?, self.dropout)
    }
}

/// Multi-head attention without anything around it.
#[derive(Debug, Clone)]
pub struct Heads {
    query: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
    dropout: f64,
}

impl Heads {
    /// `heads` heads that share `hidden` channels, parameters under `query`, `key` and `value`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and when the heads do not divide the channels.
    pub fn new(hidden: usize, heads: usize, dropout: f64, vb: VarBuilder) -> Result<Self> {
        if heads == 0 || !hidden.is_multiple_of(heads) {
            candle_core::bail!("{heads} heads cannot share {hidden} channels");
        }
        let part = |name: &str| bert_linear(hidden, hidden, vb.pp(name));
        Ok(Self { query: part("query")?, key: part("key")?, value: part("value")?, heads, dropout })
    }

    /// # Shapes
    /// - from `[batch, steps, hidden]` asks, to `[batch, keys, hidden]` answers
    /// - bias broadcast to `[batch, heads, steps, keys]`, see [`key_bias`] and [`pair_bias`]
    /// - returns `[batch, steps, hidden]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, from: &Tensor, to: &Tensor, bias: Option<&Tensor>, pass: &Pass) -> Result<Tensor> {
        let (batch, steps, hidden) = from.dims3()?;
        let width = hidden / self.heads;
        let split = |x: &Tensor| x.reshape((batch, (), self.heads, width))?.transpose(1, 2)?.contiguous();
        let query = split(&self.query.forward(from)?)?;
        let key = split(&self.key.forward(to)?)?;
        let value = split(&self.value.forward(to)?)?;
        let logits = (query.times(&key.t()?.contiguous()?)? * (width as f64).sqrt().recip())?;
        let logits = match bias {
            Some(bias) => logits.broadcast_add(bias)?,
            None => logits,
        };
        let weights = pass.dropout(&softmax(&logits, D::Minus1)?, self.dropout)?;
        weights.times(&value)?.transpose(1, 2)?.contiguous()?.reshape((batch, steps, hidden))
    }
}

/// Lowers the logits of keys that are not there: mask `[batch, keys]` to `[batch, 1, 1, keys]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn key_bias(mask: &Tensor) -> Result<Tensor> {
    mask.affine(-NO_KEY, NO_KEY)?.unsqueeze(1)?.unsqueeze(1)
}

/// Lowers the logits of pairs of which either is not there: masks `[batch, steps]` and `[batch, keys]` to
/// `[batch, 1, steps, keys]`. A step that is not there has all its logits lowered alike and so looks at every key.
///
/// # Errors
/// Those of the tensor operations.
pub fn pair_bias(steps: &Tensor, keys: &Tensor) -> Result<Tensor> {
    let both = steps.unsqueeze(2)?.broadcast_mul(&keys.unsqueeze(1)?)?;
    both.affine(-NO_KEY, NO_KEY)?.unsqueeze(1)
}

/// Self-attention, linear, dropout, and layer norm over the sum with the input: a BERT layer without its feed-forward half.
#[derive(Debug, Clone)]
pub struct SelfAttention {
    heads: Heads,
    dense: Linear,
    norm: LayerNorm,
    dropout: f64,
}

impl SelfAttention {
    /// Parameters under `self`, `output.dense` and `output.LayerNorm`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and when the heads do not divide the channels.
    pub fn new(hidden: usize, heads: usize, dropout: f64, vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            heads: Heads::new(hidden, heads, dropout, vb.pp("self"))?,
            dense: bert_linear(hidden, hidden, vb.pp("output.dense"))?,
            norm: LayerNorm::new(hidden, EPS, vb.pp("output.LayerNorm"))?,
            dropout,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, hidden]`, mask `[batch, steps]`, 1 where a step is real; returns the shape of x
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, mask: Option<&Tensor>, pass: &Pass) -> Result<Tensor> {
        let bias = mask.map(key_bias).transpose()?;
        let seen = self.heads.forward(x, x, bias.as_ref(), pass)?;
        let seen = pass.dropout(&self.dense.forward(&seen)?, self.dropout)?;
        self.norm.forward(&(seen + x)?)
    }
}

/// Turns the words of a query into one vector per stream, each with weights of its own.
#[derive(Debug, Clone)]
pub struct WordPooling {
    weights: Linear,
}

impl WordPooling {
    /// `streams` vectors of words that are `hidden` wide.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(hidden: usize, streams: usize, vb: VarBuilder) -> Result<Self> {
        Ok(Self { weights: bert_linear_no_bias(hidden, streams, vb)? })
    }

    /// # Shapes
    /// - words `[queries, words, hidden]`, mask `[queries, words]`
    /// - returns the vectors `[queries, streams, hidden]` and the weights `[queries, words, streams]`
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, words: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let logits = mask_out(&self.weights.forward(words)?, &mask.unsqueeze(2)?, NOT_THERE)?;
        let weights = softmax(&logits, 1)?;
        Ok((weights.transpose(1, 2)?.contiguous()?.times(words)?, weights))
    }
}

/// The first `length` steps of `x [batch, steps, ..]`, zeros appended when it has fewer.
///
/// # Errors
/// Those of the tensor operations.
pub fn fit_steps(x: &Tensor, length: usize) -> Result<Tensor> {
    let steps = x.dim(1)?;
    if steps >= length { x.narrow(1, 0, length)?.contiguous() } else { x.pad_with_zeros(1, 0, length - steps) }
}

/// Where each clip begins and ends as fractions of its video, `[videos, clips, 2]`, zero past the last real one.
///
/// # Errors
/// Those of the tensor operations.
pub fn clip_endpoints(lengths: &[usize], like: &Tensor) -> Result<Tensor> {
    let clips = like.dim(1)?;
    let of = |length: usize| {
        (0..clips).flat_map(move |clip| {
            let at = |clip: usize| clip as f32 / length.max(1) as f32;
            if clip < length { [at(clip), at(clip + 1)] } else { [0.0; 2] }
        })
    };
    let values: Vec<f32> = lengths.iter().copied().flat_map(of).collect();
    Tensor::from_vec(values, (lengths.len(), clips, 2), like.device())?.to_dtype(DType::F32)
}
