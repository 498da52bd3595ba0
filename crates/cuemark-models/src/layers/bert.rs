//! The BERT family, to be trained: DistilBERT (Sanh et al., 2019), BERT (Devlin et al., NAACL 2019) and what is built like it
//! (MiniLM, SimCSE), RoBERTa (Liu et al., 2019). The networks in `candle-transformers` have no gradient through their layer norm.
//!
//! Names are those of the published weights, which are loaded from outside. Untrained, its linear layers start by
//! PyTorch's default, which at the published width is as wide as BERT's own 0.02 and at small widths does not vanish.

use candle_core::{Result, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::functional::gelu;
use cuemark_tensor::{Heads, Pass, attend, look_up};
use serde::{Deserialize, Serialize};

use super::{LayerNorm, Linear, linear};

/// Sizes of an encoder; those of the published DistilBERT where left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BertSize {
    /// Width of a token. Default: 768
    pub dim: usize,
    /// Number of layers. Default: 6
    pub layers: usize,
    /// Heads of each attention; divide the width. Default: 12
    pub heads: usize,
    /// Width between the two products that follow each attention. Default: 3072
    pub ffn: usize,
    /// Rows of the table of positions: most tokens of a sentence, markers included. Default: 512
    pub positions: usize,
    /// Share of values dropped while training. Default: 0.1
    pub dropout: f64,
    /// Added to the variance in its layer norms. Default: 1e-12
    pub eps: f64,
    /// Whose names and parts it has; published weights decide, never a run file. Default: DistilBERT's
    #[serde(skip)]
    pub family: BertFamily,
}

/// Whose names and parts an encoder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BertFamily {
    /// No token types, names of its own. Default.
    #[default]
    DistilBert,
    /// BERT and RoBERTa.
    Bert {
        /// Rows of the table of token types, of which every sentence has the first.
        token_types: usize,
        /// The row of the first token's position: 0 for BERT, 2 for RoBERTa.
        first_position: usize,
    },
}

impl BertFamily {
    fn names(self) -> &'static Names {
        match self {
            Self::DistilBert => &DISTILBERT,
            Self::Bert { .. } => &BERT,
        }
    }

    fn first_position(self) -> usize {
        match self {
            Self::DistilBert => 0,
            Self::Bert { first_position, .. } => first_position,
        }
    }
}

/// What the parts of a layer are called.
struct Names {
    layers: &'static str,
    query: &'static str,
    key: &'static str,
    value: &'static str,
    joined: &'static str,
    attention_norm: &'static str,
    widen: &'static str,
    narrow: &'static str,
    output_norm: &'static str,
}

const DISTILBERT: Names = Names {
    layers: "transformer.layer",
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    joined: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    widen: "ffn.lin1",
    narrow: "ffn.lin2",
    output_norm: "output_layer_norm",
};

const BERT: Names = Names {
    layers: "encoder.layer",
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    joined: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    widen: "intermediate.dense",
    narrow: "output.dense",
    output_norm: "output.LayerNorm",
};

impl Default for BertSize {
    fn default() -> Self {
        Self {
            dim: 768,
            layers: 6,
            heads: 12,
            ffn: 3072,
            positions: 512,
            dropout: 0.1,
            eps: 1e-12,
            family: BertFamily::DistilBert,
        }
    }
}

/// The encoder.
#[derive(Debug, Clone)]
pub struct Bert {
    words: Tensor,
    places: Tensor,
    types: Option<Tensor>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    dropout: f64,
    first_position: usize,
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
    /// Share of the attention's result that is dropped: BERT's, which DistilBERT has not.
    joined_dropout: f64,
}

impl Bert {
    /// Over a vocabulary of `words` tokens.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, or the heads do not divide the width.
    pub fn new(size: &BertSize, words: usize, vb: VarBuilder) -> Result<Self> {
        if size.heads == 0 || !size.dim.is_multiple_of(size.heads) {
            candle_core::bail!("{} heads do not divide a width of {}", size.heads, size.dim);
        }
        let init = Init::Randn { mean: 0.0, stdev: 0.02 };
        let embeddings = vb.pp("embeddings");
        let table = |rows: usize, name: &str| embeddings.pp(name).get_with_hints((rows, size.dim), "weight", init);
        let types = match size.family {
            BertFamily::DistilBert | BertFamily::Bert { token_types: 0, .. } => None,
            BertFamily::Bert { token_types, .. } => Some(table(token_types, "token_type_embeddings")?),
        };
        Ok(Self {
            words: table(words, "word_embeddings")?,
            places: table(size.positions, "position_embeddings")?,
            types,
            norm: LayerNorm::new(size.dim, size.eps, embeddings.pp("LayerNorm"))?,
            layers: (0..size.layers)
                .map(|number| Layer::new(size, &vb.pp(size.family.names().layers).pp(number)))
                .collect::<Result<_>>()?,
            dropout: size.dropout,
            first_position: size.family.first_position(),
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
        let (rows, dim) = self.places.dims2()?;
        let positions = rows.saturating_sub(self.first_position);
        if length > positions {
            candle_core::bail!("a sentence of {length} tokens where the encoder has {positions} positions");
        }
        let words = look_up(&self.words, tokens)?.reshape((sentences, length, dim))?;
        let mut x = words.broadcast_add(&self.places.narrow(0, self.first_position, length)?)?;
        if let Some(types) = &self.types {
            x = x.broadcast_add(&types.narrow(0, 0, 1)?)?;
        }
        let x = pass.dropout(&self.norm.forward(&x)?, self.dropout)?;
        let unseen = mask.affine(1e9, -1e9)?.reshape((sentences, 1, 1, length))?;
        self.layers.iter().try_fold(x, |x, layer| layer.forward(&x, &unseen, pass))
    }
}

impl Layer {
    fn new(size: &BertSize, vb: &VarBuilder) -> Result<Self> {
        let names = size.family.names();
        let square = |name: &str| linear(size.dim, size.dim, vb.pp(name));
        let norm = |name: &str| LayerNorm::new(size.dim, size.eps, vb.pp(name));
        Ok(Self {
            query: square(names.query)?,
            key: square(names.key)?,
            value: square(names.value)?,
            joined: square(names.joined)?,
            attention_norm: norm(names.attention_norm)?,
            widen: linear(size.dim, size.ffn, vb.pp(names.widen))?,
            narrow: linear(size.ffn, size.dim, vb.pp(names.narrow))?,
            output_norm: norm(names.output_norm)?,
            heads: size.heads,
            dropout: size.dropout,
            joined_dropout: if size.family == BertFamily::DistilBert { 0.0 } else { size.dropout },
        })
    }

    fn forward(&self, x: &Tensor, unseen: &Tensor, pass: &Pass) -> Result<Tensor> {
        let heads = Heads { count: self.heads, bias: Some(unseen), dropout: self.dropout };
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|part| part.forward(x));
        let seen = attend(&query?, &key?, &value?, heads, pass)?;
        let joined = self.joined.forward(&seen)?;
        let x = self.attention_norm.forward(&pass.residual(x, &joined, self.joined_dropout)?)?;
        let thought = self.narrow.forward(&gelu(&self.widen.forward(&x)?)?)?;
        self.output_norm.forward(&pass.residual(&x, &thought, self.dropout)?)
    }
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::gap;

    fn small() -> BertSize {
        BertSize { dim: 8, layers: 2, heads: 2, ffn: 12, positions: 6, ..BertSize::default() }
    }

    #[test]
    fn padded_tokens_change_no_real_one() {
        let encoder = Bert::new(&small(), 10, Params::seeded(1, &Device::Cpu).builder()).unwrap();
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
        Bert::new(&BertSize::default(), 30_522, params.builder()).unwrap();
        assert_eq!(params.count(), 66_362_880); // as counted in the published checkpoint
    }

    #[test]
    fn a_sentence_longer_than_the_positions_is_refused() {
        let encoder = Bert::new(&small(), 10, Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let tokens = Tensor::zeros((1, 7), candle_core::DType::U32, &Device::Cpu).unwrap();
        let mask = Tensor::ones((1, 7), candle_core::DType::F32, &Device::Cpu).unwrap();
        let error = encoder.forward(&tokens, &mask, &Pass::answering()).unwrap_err();
        assert!(error.to_string().contains("7 tokens where the encoder has 6 positions"));
    }
}
