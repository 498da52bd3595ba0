//! The encoder: clips and words look at both, clips halve on the way.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{gelu, softmax};

use super::MsDetrConfig;
use crate::Result;
use crate::layers::{Conv1d, LayerNorm, Linear, Steps, linear};

/// Added to a variance before its root in the encoder.
pub(super) const EPS: f64 = 1e-12;

/// Clips and words that look at each other and at themselves.
#[derive(Debug)]
pub(super) struct EncoderLayer {
    pub(super) halve: bool,
    merge: Conv1d,
    place_norm: LayerNorm,
    pub(super) words: Linear,
    pub(super) word_norm: LayerNorm,
    pub(super) reduce: Option<Conv1d>,
    clips_to_clips: [Linear; 3],
    words_to_clips: [Linear; 3],
    clips_to_words: [Linear; 3],
    words_to_words: [Linear; 3],
    clip_parts: Parts,
    word_parts: Parts,
    heads: usize,
    pub(super) dropout: f64,
}

/// What follows the attention, for clips or for words.
#[derive(Debug)]
struct Parts {
    out: Linear,
    norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    last_norm: LayerNorm,
}

impl EncoderLayer {
    pub(super) fn new(config: &MsDetrConfig, number: usize, encoder: &VarBuilder) -> Result<Self> {
        let MsDetrConfig { hidden, ffn, .. } = *config;
        let vb = encoder.pp("layers").pp(number);
        let attention = vb.pp("cross_attn");
        let project = |name: &str| -> Result<[Linear; 3]> {
            let vb = attention.pp(name);
            let part = |part: usize| linear(hidden, hidden, vb.pp(part));
            Ok([part(0)?, part(1)?, part(2)?])
        };
        let parts = |out: &str, short: &str| -> Result<Parts> {
            let forward = vb.pp(format!("ff_{short}.layers"));
            Ok(Parts {
                out: linear(hidden, hidden, attention.pp(out))?,
                norm: LayerNorm::new(hidden, EPS, attention.pp(format!("ln_{short}")))?,
                widen: linear(hidden, ffn, forward.pp(0))?,
                narrow: linear(ffn, hidden, forward.pp(1))?,
                last_norm: LayerNorm::new(hidden, EPS, vb.pp(format!("ln_{short}")))?,
            })
        };
        let words = encoder.pp("txt_lvl_projs").pp(number);
        let fewer = config.reduce.get(number).copied().unwrap_or(1);
        let reduce = Steps { padding: (fewer.max(1) - 1) / 2, stride: fewer, ..Steps::default() };
        let merge = Steps { padding: 1, stride: 2, ..Steps::default() };
        Ok(Self {
            halve: config.halve.get(number).copied().unwrap_or_default(),
            merge: Conv1d::new(hidden, hidden, 3, merge, encoder.pp("patch_merge").pp(number))?,
            place_norm: LayerNorm::new(hidden, EPS, encoder.pp("pe_lns").pp(number))?,
            words: linear(hidden, hidden, words.pp(0))?,
            word_norm: LayerNorm::new(hidden, EPS, words.pp(1))?,
            reduce: match fewer {
                0 | 1 => None,
                _ => Some(Conv1d::new(hidden, hidden, fewer, reduce, attention.pp("sr"))?),
            },
            clips_to_clips: project("v2v_proj")?,
            words_to_clips: project("t2v_proj")?,
            clips_to_words: project("v2t_proj")?,
            words_to_words: project("t2t_proj")?,
            clip_parts: parts("ff_vid", "vid")?,
            word_parts: parts("ff_text", "txt")?,
            heads: config.heads,
            dropout: config.dropout,
        })
    }

    /// Half as many clips, and the means of neighbouring places.
    pub(super) fn halved(&self, clips: &Tensor, places: &Tensor) -> Result<(Tensor, Tensor)> {
        let (rows, steps, hidden) = places.dims3()?;
        let places = places.narrow(1, 0, steps / 2 * 2)?.reshape((rows, steps / 2, 2, hidden))?.mean(2)?;
        let clips = self.merge.forward(clips)?.broadcast_add(&places)?;
        Ok((self.place_norm.forward(&clips)?, places))
    }

    /// `bias` hides padded words from everything, `[batch, 1, 1, words]`.
    pub(super) fn forward(
        &self,
        clips: &Tensor,
        words: &Tensor,
        bias: &Tensor,
        pass: &Pass,
    ) -> Result<(Tensor, Tensor)> {
        let fewer = match &self.reduce {
            Some(reduce) => reduce.forward(clips)?,
            None => clips.clone(),
        };
        let look = |x: &Tensor, at_clips: &[Linear; 3], at_words: &[Linear; 3]| -> Result<Tensor> {
            let at = |[query, key, _]: &[Linear; 3], seen: &Tensor| -> Result<Tensor> {
                let (query, key) = (self.split(&query.forward(x)?)?, self.split(&key.forward(seen)?)?);
                Ok(query.times(&key.t()?.contiguous()?)?)
            };
            let fit = Tensor::cat(&[at(at_clips, &fewer)?, at(at_words, words)?.broadcast_add(bias)?], 3)?;
            // Dropped before the softmax, as in the published code.
            let scale = (x.dim(2)? as f64 / self.heads as f64).sqrt().recip();
            let weights = softmax(&(pass.dropout(&fit, self.dropout)? * scale)?, D::Minus1)?;
            let values = [self.split(&at_clips[2].forward(&fewer)?)?, self.split(&at_words[2].forward(words)?)?];
            Ok(weights.times(&Tensor::cat(&values, 2)?)?.transpose(1, 2)?.flatten_from(2)?)
        };
        let seen_by_clips = look(clips, &self.clips_to_clips, &self.words_to_clips)?;
        let seen_by_words = look(words, &self.clips_to_words, &self.words_to_words)?;
        Ok((
            self.clip_parts.forward(clips, &seen_by_clips, self.dropout, pass)?,
            self.word_parts.forward(words, &seen_by_words, self.dropout, pass)?,
        ))
    }

    /// `[batch, steps, width]` to `[batch, heads, steps, width / heads]`.
    fn split(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        Ok(x.reshape((batch, steps, self.heads, width / self.heads))?.transpose(1, 2)?.contiguous()?)
    }
}

impl Parts {
    pub(super) fn forward(&self, x: &Tensor, seen: &Tensor, dropout: f64, pass: &Pass) -> Result<Tensor> {
        let seen = pass.dropout(&self.out.forward(seen)?, dropout)?;
        let x = self.norm.forward(&(x + seen)?)?;
        let thought = self.narrow.forward(&pass.dropout(&gelu(&self.widen.forward(&x)?)?, dropout)?)?;
        Ok(self.last_norm.forward(&(&x + pass.dropout(&thought, dropout)?)?)?)
    }
}
