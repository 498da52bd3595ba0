//! The encoder of the BERT family: BERT (Devlin et al., NAACL 2019), RoBERTa (Liu et al., 2019), DistilBERT (Sanh et al., 2019).
//!
//! One network under three sets of names. It is ours rather than candle-transformers' because sentences lie one after the other
//! here and no padding is ever computed, and because bias, activation, residual and norm are one pass each.

use candle_core::{Device, Tensor};

use super::config::{Family, TransformerConfig};
use super::named::Named;
use super::ragged;
use crate::Result;

/// The network without its pooling. Inference only.
pub(super) struct Network {
    words: Tensor,
    /// With the first token type's row added, where there are types: every sentence is of the first type.
    positions: Tensor,
    /// A bias of zero, gain and shift, `[3, width]`.
    norm: Tensor,
    layers: Vec<Layer>,
    heads: usize,
    epsilon: f64,
    activation: super::config::Activation,
    first_position: usize,
}

struct Layer {
    /// Query, key and value side by side, `[width, 3 width]`.
    qkv: Tensor,
    qkv_bias: Tensor,
    out: Tensor,
    /// Bias of `out`, gain, shift, `[3, width]`.
    out_norm: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    /// Bias of `down`, gain, shift, `[3, width]`.
    down_norm: Tensor,
}

/// What a layer's parts are called.
struct Names {
    query: &'static str,
    key: &'static str,
    value: &'static str,
    out: &'static str,
    out_norm: &'static str,
    up: &'static str,
    down: &'static str,
    down_norm: &'static str,
}

const BERT_NAMES: Names = Names {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    out: "attention.output.dense",
    out_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    down_norm: "output.LayerNorm",
};

const DISTILBERT_NAMES: Names = Names {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    out: "attention.out_lin",
    out_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    down_norm: "output_layer_norm",
};

/// Where a family keeps its layers.
pub(super) fn layers_of(family: Family) -> &'static str {
    match family {
        Family::Bert | Family::Roberta { .. } => "encoder.layer.",
        Family::DistilBert => "transformer.layer.",
    }
}

/// The parameter that every such network has.
pub(super) const ANCHOR: &str = "embeddings.word_embeddings.weight";

impl Network {
    pub(super) fn load(named: &Named, config: &TransformerConfig) -> Result<Self> {
        let width = config.width;
        let mut positions = named.get("embeddings.position_embeddings.weight", &[config.positions, width])?;
        if config.token_types > 0 {
            let types = named.get("embeddings.token_type_embeddings.weight", &[config.token_types, width])?;
            positions = positions.broadcast_add(&types.narrow(0, 0, 1)?)?;
        }
        let zero = Tensor::zeros(width, positions.dtype(), positions.device())?;
        let layers = (0..config.layers).map(|number| Layer::load(named, config, number)).collect::<Result<_>>()?;
        Ok(Self {
            words: named.get(ANCHOR, &[config.words, width])?,
            positions,
            norm: norm(named, "embeddings.LayerNorm", &zero)?,
            layers,
            heads: config.heads,
            epsilon: config.epsilon,
            activation: config.activation,
            first_position: if let Family::Roberta { first_position } = config.family { first_position } else { 0 },
        })
    }

    pub(super) fn device(&self) -> &Device {
        self.words.device()
    }

    /// The last hidden state of every token, `[tokens, width]`, sentence after sentence.
    pub(super) fn forward(&self, sentences: &[&[u32]]) -> Result<Tensor> {
        let lengths: Vec<usize> = sentences.iter().map(|sentence| sentence.len()).collect();
        let first = self.first_position as u32;
        let ids: Vec<u32> = sentences.concat();
        let places: Vec<u32> = lengths.iter().flat_map(|length| first..first + *length as u32).collect();
        let lookup = |table: &Tensor, rows: Vec<u32>| table.index_select(&Tensor::new(rows, self.device())?, 0);
        let places = lookup(&self.positions, places)?;
        let mut x = ragged::add_norm(lookup(&self.words, ids)?, &places, &self.norm, self.epsilon)?;
        for layer in &self.layers {
            let context = ragged::attention(&x.matmul(&layer.qkv)?, &layer.qkv_bias, self.heads, &lengths)?;
            x = ragged::add_norm(context.matmul(&layer.out)?, &x, &layer.out_norm, self.epsilon)?;
            let inner = ragged::activate(x.matmul(&layer.up)?, &layer.up_bias, self.activation)?;
            x = ragged::add_norm(inner.matmul(&layer.down)?, &x, &layer.down_norm, self.epsilon)?;
        }
        Ok(x)
    }
}

impl Layer {
    fn load(named: &Named, config: &TransformerConfig, number: usize) -> Result<Self> {
        let (width, inner) = (config.width, config.inner);
        let names = match config.family {
            Family::Bert | Family::Roberta { .. } => BERT_NAMES,
            Family::DistilBert => DISTILBERT_NAMES,
        };
        let full = |part: &str| format!("{}{number}.{part}", layers_of(config.family));
        let linear = |part: &str, input: usize, output: usize| named.linear(&full(part), input, output);
        let parts = [names.query, names.key, names.value].map(|part| linear(part, width, width));
        let [query, key, value] = parts;
        let (query, key, value) = (query?, key?, value?);
        let (out, out_bias) = linear(names.out, width, width)?;
        let (up, up_bias) = linear(names.up, width, inner)?;
        let (down, down_bias) = linear(names.down, inner, width)?;
        Ok(Self {
            qkv: Tensor::cat(&[query.0, key.0, value.0], 1)?.contiguous()?,
            qkv_bias: Tensor::cat(&[query.1, key.1, value.1], 0)?,
            out,
            out_norm: norm(named, &full(names.out_norm), &out_bias)?,
            up,
            up_bias,
            down,
            down_norm: norm(named, &full(names.down_norm), &down_bias)?,
        })
    }
}

/// A bias and the norm after it, `[3, width]`.
fn norm(named: &Named, name: &str, bias: &Tensor) -> Result<Tensor> {
    let width = bias.dim(0)?;
    let part = |part: &str| named.get(&format!("{name}.{part}"), &[width]);
    Ok(Tensor::stack(&[bias.clone(), part("weight")?, part("bias")?], 0)?)
}
