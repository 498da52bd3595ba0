//! Transformer layers with PyTorch's names, normalised after each part.

use candle_core::{Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;

use super::detr::glorot;
use super::{LayerNorm, Linear, MultiHead, linear};

/// Added to a variance before its root.
const EPS: f64 = 1e-5;

/// Sizes of one layer.
#[derive(Debug, Clone, Copy)]
pub struct TransformerSize {
    /// Width of a step.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Width inside the feed-forward part.
    pub ffn: usize,
    /// Share of values that training drops.
    pub dropout: f64,
}

/// Self-attention and a feed-forward part with ReLU.
#[derive(Debug, Clone)]
pub struct EncoderLayer {
    self_attn: MultiHead,
    feed_forward: FeedForward,
    norms: [LayerNorm; 2],
    dropout: f64,
}

/// Self-attention, attention to a memory, and a feed-forward part with ReLU.
#[derive(Debug, Clone)]
pub struct DecoderLayer {
    self_attn: MultiHead,
    memory_attn: MultiHead,
    feed_forward: FeedForward,
    norms: [LayerNorm; 3],
    dropout: f64,
}

#[derive(Debug, Clone)]
struct FeedForward {
    widen: Linear,
    narrow: Linear,
    dropout: f64,
}

impl FeedForward {
    fn new(size: TransformerSize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            widen: linear(size.width, size.ffn, vb.pp("linear1"))?,
            narrow: linear(size.ffn, size.width, vb.pp("linear2"))?,
            dropout: size.dropout,
        })
    }

    fn forward(&self, x: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.narrow.forward(&pass.dropout(&self.widen.forward_relu(x)?, self.dropout)?)
    }
}

impl EncoderLayer {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(size: TransformerSize, vb: VarBuilder) -> Result<Self> {
        let norm = |name: &str| LayerNorm::new(size.width, EPS, vb.pp(name));
        Ok(Self {
            self_attn: MultiHead::new(size.width, size.heads, vb.pp("self_attn"))?,
            feed_forward: FeedForward::new(size, &vb)?,
            norms: [norm("norm1")?, norm("norm2")?],
            dropout: size.dropout,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, width]`, and so the result
    /// - position, added to queries and keys alone, `[batch, steps, width]`; bias as [`MultiHead::forward`] takes it
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(&self, x: &Tensor, position: Option<&Tensor>, bias: Option<&Tensor>, pass: &Pass) -> Result<Tensor> {
        let placed = place(x, position)?;
        let seen = self.self_attn.forward(&placed, &placed, x, bias, self.dropout, pass)?;
        let x = self.norms[0].forward(&pass.residual(x, &seen, self.dropout)?)?;
        let thought = self.feed_forward.forward(&x, pass)?;
        self.norms[1].forward(&pass.residual(&x, &thought, self.dropout)?)
    }
}

impl DecoderLayer {
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(size: TransformerSize, vb: VarBuilder) -> Result<Self> {
        let attention = |name: &str| MultiHead::new(size.width, size.heads, vb.pp(name));
        Self::of([attention("self_attn")?, attention("multihead_attn")?], FeedForward::new(size, &vb)?, size, &vb)
    }

    /// As [`DecoderLayer::new`], every matrix drawn as Glorot's.
    ///
    /// # Errors
    /// As [`DecoderLayer::new`].
    pub fn glorot(size: TransformerSize, vb: VarBuilder) -> Result<Self> {
        let attention = |name: &str| MultiHead::glorot(size.width, size.heads, vb.pp(name));
        let feed_forward = FeedForward {
            widen: glorot(size.width, size.ffn, vb.pp("linear1"))?,
            narrow: glorot(size.ffn, size.width, vb.pp("linear2"))?,
            dropout: size.dropout,
        };
        Self::of([attention("self_attn")?, attention("multihead_attn")?], feed_forward, size, &vb)
    }

    fn of(
        [self_attn, memory_attn]: [MultiHead; 2],
        feed_forward: FeedForward,
        size: TransformerSize,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let norm = |name: &str| LayerNorm::new(size.width, EPS, vb.pp(name));
        Ok(Self {
            self_attn,
            memory_attn,
            feed_forward,
            norms: [norm("norm1")?, norm("norm2")?, norm("norm3")?],
            dropout: size.dropout,
        })
    }

    /// # Shapes
    /// - x `[batch, steps, width]`, and so the result; memory `[batch, items, width]`
    /// - positions of the steps and of the memory, added to queries and keys alone
    /// - bias on the memory as [`MultiHead::forward`] takes it
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn forward(
        &self,
        x: &Tensor,
        memory: &Tensor,
        positions: [Option<&Tensor>; 2],
        bias: Option<&Tensor>,
        pass: &Pass,
    ) -> Result<Tensor> {
        let placed = place(x, positions[0])?;
        let seen = self.self_attn.forward(&placed, &placed, x, None, self.dropout, pass)?;
        let x = self.norms[0].forward(&pass.residual(x, &seen, self.dropout)?)?;
        let (placed, keys) = (place(&x, positions[0])?, place(memory, positions[1])?);
        let seen = self.memory_attn.forward(&placed, &keys, memory, bias, self.dropout, pass)?;
        let x = self.norms[1].forward(&pass.residual(&x, &seen, self.dropout)?)?;
        let thought = self.feed_forward.forward(&x, pass)?;
        self.norms[2].forward(&pass.residual(&x, &thought, self.dropout)?)
    }
}

fn place(x: &Tensor, position: Option<&Tensor>) -> Result<Tensor> {
    position.map_or_else(|| Ok(x.clone()), |position| x.broadcast_add(position))
}
