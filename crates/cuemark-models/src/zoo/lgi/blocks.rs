//! What LGI and PLRN are made of.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};

use super::Output;
use crate::layers::{BatchNorm, Conv1d, Linear, Recurrent, Running, Steps, Ways, linear, linear_no_bias};
use crate::{ModelError, Result};

/// Words to states, both ways, over the real words of each query.
#[derive(Debug)]
pub(in crate::zoo) struct QueryEncoder {
    rnn: Recurrent,
    dropout: f64,
}

impl QueryEncoder {
    pub(in crate::zoo) fn new(
        words: usize,
        hidden: usize,
        layers: usize,
        dropout: f64,
        vb: &VarBuilder,
    ) -> Result<Self> {
        Ok(Self { rnn: Recurrent::lstm(words, hidden / 2, layers, Ways::Both, vb.clone())?, dropout })
    }

    /// # Shapes
    /// - words `[batch, words, d_word]`; returns `[batch, words, hidden]`, zero at padding
    pub(in crate::zoo) fn forward(&self, words: &Tensor, lengths: &[usize], pass: &Pass) -> Result<Tensor> {
        let running = Running { lengths: Some(lengths), dropout: self.dropout, ..Running::default() };
        Ok(self.rnn.every_layer(words, running, pass)?.pop().unwrap_or_else(|| words.clone()))
    }
}

/// A clip and where it stands, `[batch, clips, hidden]`, zero at padding.
#[derive(Debug)]
pub(in crate::zoo) struct VideoEncoder {
    project: Linear,
    places: Tensor,
    dropout: f64,
}

impl VideoEncoder {
    pub(in crate::zoo) fn new(
        visual: usize,
        hidden: usize,
        clips: usize,
        dropout: f64,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            project: linear(visual, hidden, vb.pp("vid_emb_fn.0"))?,
            places: vb.get_with_hints((clips, hidden), "pos_emb_fn.0.weight", normal)?,
            dropout,
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`, mask `[batch, clips]`; no more clips than there are places
    pub(in crate::zoo) fn forward(&self, visual: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let clips = pass.dropout(&self.project.forward(visual)?.relu()?, self.dropout)?;
        let places = self.places.narrow(0, 0, visual.dim(1)?)?.relu()?;
        let places = pass.dropout(&places.broadcast_as(clips.shape())?.contiguous()?, self.dropout)?;
        Ok((clips + places)?.broadcast_mul(&mask.unsqueeze(2)?)?)
    }
}

/// Takes phrases from a query one after another, each guided by the one before.
#[derive(Debug)]
pub(super) struct PhraseReader {
    of_sentence: Vec<Linear>,
    guide: Linear,
    pub(super) attention: WordAttention,
}

impl PhraseReader {
    pub(super) fn new(hidden: usize, width: usize, phrases: usize, vb: &VarBuilder) -> Result<Self> {
        let of_sentence = |n: usize| linear(hidden, hidden, vb.pp("global_emb_fn").pp(n));
        Ok(Self {
            of_sentence: (0..phrases).map(of_sentence).collect::<candle_core::Result<_>>()?,
            guide: linear(2 * hidden, hidden, vb.pp("guide_emb_fn.0"))?,
            attention: WordAttention::new(hidden, width, &vb.pp("att_fn"))?,
        })
    }

    /// # Shapes
    /// - sentence `[batch, hidden]`, words `[batch, words, hidden]`, mask `[batch, words]`
    /// - returns phrases `[batch, phrases, hidden]` and their attention `[batch, phrases, words]`
    pub(super) fn forward(&self, sentence: &Tensor, words: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut before = sentence.zeros_like()?;
        let (mut phrases, mut attentions) = (Vec::new(), Vec::new());
        for of_sentence in &self.of_sentence {
            let guide = Tensor::cat(&[of_sentence.forward(sentence)?, before], 1)?;
            let guide = self.guide.forward(&guide)?.relu()?;
            let (phrase, attention) = self.attention.forward(&guide, words, mask)?;
            before = phrase.clone();
            phrases.push(phrase);
            attentions.push(attention);
        }
        Ok((Tensor::stack(&phrases, 1)?, Tensor::stack(&attentions, 1)?))
    }
}

/// Additive attention of one vector over words.
#[derive(Debug)]
pub(in crate::zoo) struct WordAttention {
    from_key: Linear,
    from_word: Linear,
    score: Linear,
}

impl WordAttention {
    pub(in crate::zoo) fn new(hidden: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            from_key: linear(hidden, width, vb.pp("key2att"))?,
            from_word: linear(hidden, width, vb.pp("feat2att"))?,
            score: linear(width, 1, vb.pp("to_alpha"))?,
        })
    }

    /// # Shapes
    /// - key `[batch, hidden]`, words `[batch, words, hidden]`, mask `[batch, words]`
    /// - returns what is attended to, `[batch, hidden]`, and the weights `[batch, words]`
    pub(in crate::zoo) fn forward(&self, key: &Tensor, words: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let both = self.from_word.forward(words)?.broadcast_add(&self.from_key.forward(key)?.unsqueeze(1)?)?;
        let scores = self.score.forward(&both.tanh()?)?.squeeze(D::Minus1)?;
        let weights = softmax(&mask_out(&scores, mask, -1e9)?, D::Minus1)?;
        Ok((weights.unsqueeze(1)?.times(words)?.squeeze(1)?, weights))
    }
}

/// A phrase with every clip: a product between two layers.
#[derive(Debug)]
pub(in crate::zoo) struct Fusion {
    of_clip: Linear,
    of_phrase: Linear,
    out: Linear,
}

impl Fusion {
    pub(in crate::zoo) fn new(hidden: usize, query: usize, vb: &VarBuilder) -> Result<Self> {
        let layer = |inputs: usize, name: &str| linear(inputs, hidden, vb.pp(name));
        Ok(Self { of_clip: layer(hidden, "fc_1")?, of_phrase: layer(query, "fc_2")?, out: layer(hidden, "fc_3")? })
    }

    /// # Shapes
    /// - clips `[batch, clips, hidden]`, phrase `[batch, 1, query]`; returns `[batch, clips, hidden]`
    pub(in crate::zoo) fn forward(&self, clips: &Tensor, phrase: &Tensor) -> Result<Tensor> {
        let phrase = self.of_phrase.forward(&phrase.contiguous()?)?.relu()?;
        let both = self.of_clip.forward(clips)?.relu()?.broadcast_mul(&phrase)?;
        Ok(self.out.forward(&both)?.relu()?)
    }
}

/// Residual blocks of two convolutions along time.
#[derive(Debug)]
pub(in crate::zoo) struct LocalContext {
    blocks: Vec<[(Conv1d, BatchNorm); 2]>,
}

impl LocalContext {
    pub(in crate::zoo) fn new(hidden: usize, kernel: usize, blocks: usize, vb: &VarBuilder) -> Result<Self> {
        let steps = Steps { padding: kernel / 2, ..Steps::default() };
        let layer = |vb: &VarBuilder, place: usize| -> Result<(Conv1d, BatchNorm)> {
            let conv = Conv1d::without_bias(hidden, hidden, kernel, steps, vb.pp(place))?;
            Ok((conv, BatchNorm::new(hidden, vb.pp(place + 1))?))
        };
        // Places 0 and 1, then 3 and 4: the published block counts its ReLU.
        let block = |n: usize| {
            let vb = vb.pp("blocks").pp(n);
            Ok([layer(&vb, 0)?, layer(&vb, 3)?])
        };
        Ok(Self { blocks: (0..blocks).map(block).collect::<Result<_>>()? })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, kept `[batch, clips, 1]`; returns as x
    pub(in crate::zoo) fn forward(&self, x: &Tensor, kept: &Tensor, pass: &Pass) -> Result<Tensor> {
        let mut x = x.clone();
        for [first, second] in &self.blocks {
            let layer = |(conv, norm): &(Conv1d, BatchNorm), x: &Tensor| -> Result<Tensor> {
                Ok(norm.forward(&conv.forward(&x.broadcast_mul(kept)?)?, pass)?)
            };
            let y = layer(second, &layer(first, &x)?.relu()?)?;
            x = (x + y)?.relu()?;
        }
        Ok(x)
    }
}

/// A score per row: `w · tanh(W x)`, no biases.
#[derive(Debug)]
pub(in crate::zoo) struct Scorer {
    hidden: Linear,
    score: Linear,
}

impl Scorer {
    pub(in crate::zoo) fn new(inputs: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            hidden: linear_no_bias(inputs, width, vb.pp("feat2att"))?,
            score: linear_no_bias(width, 1, vb.pp("to_alpha"))?,
        })
    }

    /// # Shapes
    /// - x `[batch, rows, inputs]`; returns `[batch, rows]`
    pub(in crate::zoo) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.score.forward(&self.hidden.forward(x)?.tanh()?)?.squeeze(D::Minus1)?)
    }
}

/// Every clip attends to all real ones; what it attends to is added.
#[derive(Debug)]
pub(in crate::zoo) struct GlobalBlock {
    key: Linear,
    query_value: Linear,
    heads: usize,
}

impl GlobalBlock {
    pub(in crate::zoo) fn new(hidden: usize, heads: usize, model: &'static str, vb: &VarBuilder) -> Result<Self> {
        if heads == 0 || !hidden.is_multiple_of(heads) {
            let problem = format!("`heads` = {heads} does not divide `hidden` = {hidden}");
            return Err(ModelError::Settings { model, problem });
        }
        Ok(Self {
            key: linear(hidden, hidden, vb.pp("v_lin"))?,
            query_value: linear(hidden, 2 * hidden, vb.pp("c_lin"))?,
            heads,
        })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, mask `[batch, clips]`; returns as x
    pub(in crate::zoo) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (batch, clips, hidden) = x.dims3()?;
        let width = hidden / self.heads;
        let split = |x: &Tensor| x.reshape((batch, clips, self.heads, width))?.transpose(1, 2)?.contiguous();
        let both = self.query_value.forward(x)?;
        let (query, value) = (split(&both.narrow(2, 0, hidden)?)?, split(&both.narrow(2, hidden, hidden)?)?);
        // Rows are the key projection: the published code has the two names the other way round.
        let key = split(&self.key.forward(x)?)?;
        let logits = (key.times(&query.t()?.contiguous()?)? * (width as f64).sqrt().recip())?;
        let weights = softmax(&mask_out(&logits, &mask.unsqueeze(1)?.unsqueeze(1)?, -1e9)?, D::Minus1)?;
        let attended = weights.times(&value)?.transpose(1, 2)?.reshape((batch, clips, hidden))?;
        Ok((x + attended)?)
    }
}

/// One vector of a video: clips weighted by attention, then a layer.
#[derive(Debug)]
pub(in crate::zoo) struct TemporalPool {
    score: Scorer,
    out: Linear,
}

impl TemporalPool {
    pub(in crate::zoo) fn new(hidden: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        Ok(Self { score: Scorer::new(hidden, width, vb)?, out: linear(hidden, hidden, vb.pp("fc"))? })
    }

    /// # Shapes
    /// - x `[batch, clips, hidden]`, mask `[batch, clips]`; returns weights `[batch, clips]` and `[batch, hidden]`
    pub(in crate::zoo) fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let weights = softmax(&mask_out(&self.score.forward(x)?, mask, -1e9)?, D::Minus1)?;
        let pooled = weights.unsqueeze(1)?.times(x)?.squeeze(1)?;
        Ok((weights, self.out.forward(&pooled)?))
    }
}

/// Two bounded numbers from one vector.
#[derive(Debug)]
pub(in crate::zoo) struct Head {
    hidden: Linear,
    out: Linear,
    output: Output,
}

impl Head {
    pub(in crate::zoo) fn new(inputs: usize, hidden: usize, output: Output, vb: &VarBuilder) -> Result<Self> {
        Ok(Self { hidden: linear(inputs, hidden, vb.pp(0))?, out: linear(hidden, 2, vb.pp(2))?, output })
    }

    /// # Shapes
    /// - x `[batch, inputs]`; returns `[batch, 2]`
    pub(in crate::zoo) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let out = self.out.forward(&self.hidden.forward(x)?.relu()?)?;
        Ok(match self.output {
            Output::Sigmoid => sigmoid(&out)?,
            Output::Relu => out.relu()?,
        })
    }
}
