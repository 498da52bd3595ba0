//! DistilBERT that can be trained: the one in `candle-transformers` has no gradient through its layer norm.
//! Sanh et al., "DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter", 2019.
//!
//! Names are those of the published weights, which are loaded from outside. Untrained, its linear layers start by
//! PyTorch's default, which at the published width is as wide as BERT's own 0.02 and at small widths does not vanish.

use candle_core::{D, Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{gelu, softmax};
use serde::{Deserialize, Serialize};

use super::{LayerNorm, Linear, linear};

/// Sizes of a DistilBERT; the published ones where left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DistilBertSize {
    /// Width of a token. Default: 768
    pub dim: usize,
    /// Number of layers. Default: 6
    pub layers: usize,
    /// Heads of each attention; divide the width. Default: 12
    pub heads: usize,
    /// Width between the two products that follow each attention. Default: 3072
    pub ffn: usize,
    /// Most tokens of a sentence, markers included. Default: 512
    pub positions: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Added to the variance in its layer norms. Default: 1e-12
    pub eps: f64,
}

impl Default for DistilBertSize {
    fn default() -> Self {
        Self { dim: 768, layers: 6, heads: 12, ffn: 3072, positions: 512, dropout: 0.1, eps: 1e-12 }
    }
}

/// The encoder.
#[derive(Debug, Clone)]
pub struct DistilBert {
    words: Tensor,
    places: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    dropout: f64,
}

#[derive(Debug, Clone)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    joined: Linear,
    attention_norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    output_norm: LayerNorm,
    heads: usize,
    dropout: f64,
}

impl DistilBert {
    /// Over a vocabulary of `words` tokens.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, or the heads do not divide the width.
    pub fn new(size: &DistilBertSize, words: usize, vb: VarBuilder) -> Result<Self> {
        if size.heads == 0 || !size.dim.is_multiple_of(size.heads) {
            candle_core::bail!("{} heads do not divide a width of {}", size.heads, size.dim);
        }
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        let embeddings = vb.pp("embeddings");
        let table = |rows: usize, name: &str| embeddings.pp(name).get_with_hints((rows, size.dim), "weight", init);
        Ok(Self {
            words: table(words, "word_embeddings")?,
            places: table(size.positions, "position_embeddings")?,
            norm: LayerNorm::new(size.dim, size.eps, embeddings.pp("LayerNorm"))?,
            layers: (0..size.layers)
                .map(|number| Layer::new(size, &vb.pp("transformer.layer").pp(number)))
                .collect::<Result<_>>()?,
            dropout: size.dropout,
        })
    }

    /// Padding is never attended to; what stands there in the result means nothing.
    ///
    /// # Shapes
    /// - tokens `[sentences, tokens]`; mask `[sentences, tokens]`, 1 where a token is real
    /// - returns `[sentences, tokens, dim]`
    ///
    /// # Errors
    /// When there are more tokens than positions, or one is outside the vocabulary.
    pub fn forward(&self, tokens: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (sentences, length) = tokens.dims2()?;
        let (positions, dim) = self.places.dims2()?;
        if length > positions {
            candle_core::bail!("a sentence of {length} tokens where the encoder has {positions} positions");
        }
        let words = self.words.index_select(&tokens.flatten_all()?, 0)?.reshape((sentences, length, dim))?;
        let x = words.broadcast_add(&self.places.narrow(0, 0, length)?)?;
        let x = pass.dropout(&self.norm.forward(&x)?, self.dropout)?;
        let unseen = mask.affine(1e9, -1e9)?.reshape((sentences, 1, 1, length))?;
        self.layers.iter().try_fold(x, |x, layer| layer.forward(&x, &unseen, pass))
    }
}

impl Layer {
    fn new(size: &DistilBertSize, vb: &VarBuilder) -> Result<Self> {
        let attention = vb.pp("attention");
        let square = |name: &str| linear(size.dim, size.dim, attention.pp(name));
        Ok(Self {
            query: square("q_lin")?,
            key: square("k_lin")?,
            value: square("v_lin")?,
            joined: square("out_lin")?,
            attention_norm: LayerNorm::new(size.dim, size.eps, vb.pp("sa_layer_norm"))?,
            widen: linear(size.dim, size.ffn, vb.pp("ffn.lin1"))?,
            narrow: linear(size.ffn, size.dim, vb.pp("ffn.lin2"))?,
            output_norm: LayerNorm::new(size.dim, size.eps, vb.pp("output_layer_norm"))?,
            heads: size.heads,
            dropout: size.dropout,
        })
    }

    fn forward(&self, x: &Tensor, unseen: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (sentences, length, dim) = x.dims3()?;
        let width = dim / self.heads;
        let heads =
            |of: &Linear| of.forward(x)?.reshape((sentences, length, self.heads, width))?.transpose(1, 2)?.contiguous();
        let query = (heads(&self.query)? / (width as f64).sqrt())?;
        let keys = heads(&self.key)?.transpose(2, 3)?.contiguous()?;
        let weights = softmax(&query.times(&keys)?.broadcast_add(unseen)?, D::Minus1)?;
        let seen = pass.dropout(&weights, self.dropout)?.times(&heads(&self.value)?)?;
        let seen = seen.transpose(1, 2)?.reshape((sentences, length, dim))?;
        let x = self.attention_norm.forward(&(self.joined.forward(&seen)? + x)?)?;
        let thought = self.narrow.forward(&gelu(&self.widen.forward(&x)?)?)?;
        self.output_norm.forward(&(pass.dropout(&thought, self.dropout)? + x)?)
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::gap;

    fn small() -> DistilBertSize {
        DistilBertSize { dim: 8, layers: 2, heads: 2, ffn: 12, positions: 6, ..DistilBertSize::default() }
    }

    #[test]
    fn padded_tokens_change_no_real_one() {
        let encoder = DistilBert::new(&small(), 10, Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let run = |tokens: &[[u32; 5]; 1], mask: &[[f32; 5]; 1]| {
            let (tokens, mask) = (Tensor::new(tokens, &Device::Cpu).unwrap(), Tensor::new(mask, &Device::Cpu).unwrap());
            encoder.forward(&tokens, &mask, &Pass::answering()).unwrap().narrow(1, 0, 3).unwrap()
        };
        let (first, second) = (&[[1, 5, 2, 0, 0]], &[[1, 5, 2, 7, 9]]);
        let mask = &[[1.0, 1.0, 1.0, 0.0, 0.0]];
        assert!(gap(&run(first, mask), &run(second, mask)) == 0.0);
        assert!(gap(&run(first, mask), &run(second, &[[1.0; 5]])) > 1e-3); // the mask is what makes the difference
    }

    #[test]
    fn the_published_size_has_66_million_parameters() {
        let params = Params::counted();
        DistilBert::new(&DistilBertSize::default(), 30_522, params.builder()).unwrap();
        assert_eq!(params.count(), 66_362_880); // as counted in the published checkpoint
    }

    #[test]
    fn a_sentence_longer_than_the_positions_is_refused() {
        let encoder = DistilBert::new(&small(), 10, Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let tokens = Tensor::zeros((1, 7), candle_core::DType::U32, &Device::Cpu).unwrap();
        let mask = Tensor::ones((1, 7), candle_core::DType::F32, &Device::Cpu).unwrap();
        let error = encoder.forward(&tokens, &mask, &Pass::answering()).unwrap_err();
        assert!(error.to_string().contains("7 tokens where the encoder has 6 positions"));
    }
}
