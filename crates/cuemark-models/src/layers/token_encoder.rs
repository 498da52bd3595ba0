//! The tokens of a sentence as vectors, for models that read tokens: by an encoder inside the model, which learns with it, or by
//! one outside that stays as it is.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::Pass;

use super::{Bert, BertSize};
use crate::Given;

/// Who turns tokens into vectors.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum TokenVectors {
    /// The model's own encoder, of the sizes in its settings. Default.
    #[default]
    Own,
    /// The model's own encoder, of the sizes of published weights that will be laid into it.
    Published(BertSize),
    /// An encoder outside that stays as it is: batches carry its vectors, [`Given::words`] wide.
    Given,
}

/// Tokens to vectors.
#[derive(Debug, Clone)]
pub enum TokenEncoder {
    /// An encoder that learns with the model.
    Own {
        /// The network.
        bert: Bert,
        /// Width of its vectors.
        width: usize,
    },
    /// Nothing: vectors are given.
    Given {
        /// Width of the vectors.
        width: usize,
    },
}

impl TokenEncoder {
    /// Of the sizes that settings give, unless published weights or the data say otherwise.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(settings: &BertSize, given: &Given, vb: VarBuilder) -> Result<Self> {
        let size = match &given.tokens {
            TokenVectors::Given => return Ok(Self::Given { width: given.words }),
            TokenVectors::Own => settings,
            TokenVectors::Published(size) => size,
        };
        Ok(Self::Own { bert: Bert::new(size, given.vocabulary, vb)?, width: size.dim })
    }

    /// Width of a token's vector.
    pub fn width(&self) -> usize {
        match self {
            Self::Own { width, .. } | Self::Given { width } => *width,
        }
    }

    /// What it reads of tokens: their numbers `[sentences, tokens]`, or the vectors `[sentences, tokens, width]` that came with them.
    pub fn reads<'a>(&self, ids: &'a Tensor, vectors: &'a Tensor) -> &'a Tensor {
        match self {
            Self::Own { .. } => ids,
            Self::Given { .. } => vectors,
        }
    }

    /// # Shapes
    /// - tokens: what [`TokenEncoder::reads`] picked; mask `[sentences, tokens]`, 1 where a token is real
    /// - returns `[sentences, tokens, width]`; what stands at padding means nothing
    ///
    /// # Errors
    /// When there are more tokens than positions, one is outside the vocabulary, or vectors have another width.
    pub fn forward(&self, tokens: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        match self {
            Self::Own { bert, .. } => bert.forward(tokens, mask, pass),
            Self::Given { width } => match tokens.dims() {
                [_, _, found] if found == width => Ok(tokens.clone()),
                shape => candle_core::bail!("token vectors of shape {shape:?} where {width} values each are wanted"),
            },
        }
    }
}
