//! How clips and words are read.

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, softmax};
use cuemark_text::Vocabulary;

use super::WsslConfig;
use crate::layers::{Linear, Recurrent, Running, Ways, linear_no_bias, real_steps};
use crate::{QueryBatch, Result};

/// Rows of features, `[videos, clips, width]`, with the number of real ones of each.
#[derive(Clone, Copy)]
pub(super) struct Clips<'a> {
    pub(super) x: &'a Tensor,
    pub(super) mask: &'a Tensor,
    pub(super) lengths: &'a [usize],
}

/// Sentences between their markers: numbers and 1 where one is real, `[sentences, tokens]`, and the video of each.
#[derive(Clone)]
pub(super) struct Sentences {
    pub(super) ids: Tensor,
    pub(super) mask: Tensor,
    pub(super) lengths: Vec<usize>,
    pub(super) video: Tensor,
}

impl Sentences {
    /// The queries of a batch between a start and an end; words past `vocabulary` become the unknown word.
    pub(super) fn of(queries: &QueryBatch, vocabulary: usize) -> Result<Self> {
        let words = queries.word_ids.dim(1)?;
        let known = |id: u32| if (id as usize) < vocabulary { id } else { Vocabulary::UNKNOWN };
        let mut ids = Vec::new();
        for (numbers, length) in queries.word_ids.to_vec2::<u32>()?.into_iter().zip(&queries.lengths) {
            let sentence = numbers.into_iter().take(*length).map(known);
            let marked = std::iter::once(Vocabulary::START).chain(sentence).chain([Vocabulary::END]);
            ids.extend(marked.chain(std::iter::repeat(Vocabulary::PADDING)).take(words + 2));
        }
        let lengths: Vec<usize> = queries.lengths.iter().map(|length| length + 2).collect();
        let device = queries.word_ids.device();
        let ids = Tensor::from_vec(ids, (lengths.len(), words + 2), device)?;
        let video: Vec<u32> = queries.video.iter().map(|video| *video as u32).collect();
        Self::with_lengths(ids, lengths, Tensor::new(video, device)?)
    }

    pub(super) fn with_lengths(ids: Tensor, lengths: Vec<usize>, video: Tensor) -> Result<Self> {
        let mask = real_steps(&lengths, ids.dim(1)?, ids.device())?;
        Ok(Self { ids, mask, lengths, video })
    }

    /// Minus the log probability of each sentence, `[sentences]`, from `said [sentences, tokens, vocabulary]`.
    pub(super) fn unsaid(&self, said: &Tensor) -> Result<Tensor> {
        let right = said.gather(&self.ids.unsqueeze(2)?, 2)?.squeeze(2)?;
        Ok((right * &self.mask)?.sum(1)?.neg()?)
    }

    /// What was said instead, up to the first end.
    pub(super) fn said(&self, said: &Tensor) -> Result<Self> {
        let mut ids = said.detach().argmax(D::Minus1)?.to_vec2::<u32>()?;
        let mut lengths = Vec::with_capacity(ids.len());
        for sentence in &mut ids {
            sentence[0] = Vocabulary::START;
            let end = sentence.iter().position(|id| *id == Vocabulary::END);
            lengths.push(end.map_or(sentence.len(), |end| end + 1));
        }
        let ids = Tensor::new(ids.concat(), self.ids.device())?.reshape(self.ids.shape())?;
        Self::with_lengths(ids, lengths, self.video.clone())
    }
}

/// A recurrent network over clips, with a short cut where videos are read.
#[derive(Debug)]
pub(super) struct Reader {
    recurrent: Recurrent,
    short_cut: Option<Linear>,
    pub(super) dropout: f64,
}

/// What was read at every step: outputs `[rows, steps, hidden]` and the states of all layers, `[rows, steps, layers × hidden]`.
pub(super) struct Read {
    pub(super) outputs: Tensor,
    pub(super) states: Tensor,
}

impl Reader {
    pub(super) fn of_clips(config: &WsslConfig, visual: usize, vb: &VarBuilder) -> Result<Self> {
        let short_cut = Some(linear_no_bias(visual, config.hidden, vb.pp("linear"))?);
        Ok(Self { short_cut, ..Self::of_words(config, visual, vb)? })
    }

    pub(super) fn of_words(config: &WsslConfig, inputs: usize, vb: &VarBuilder) -> Result<Self> {
        let recurrent = Recurrent::gru(inputs, config.hidden, config.layers, Ways::Forward, vb.pp("rnn_cell"))?;
        Ok(Self { recurrent, short_cut: None, dropout: config.dropout })
    }

    pub(super) fn read(&self, x: &Tensor, pass: &Pass) -> Result<Read> {
        let layers = self.recurrent.every_layer(x, Running { dropout: self.dropout, ..Running::default() }, pass)?;
        let last = layers.last().cloned().unwrap_or_else(|| x.clone());
        let outputs = match &self.short_cut {
            Some(short_cut) => (last + short_cut.forward(x)?)?,
            None => last,
        };
        Ok(Read { outputs, states: Tensor::cat(&layers, 2)? })
    }
}

/// What `state [rows, states]` sees in `x [rows, steps, hidden]`: `[rows, hidden]`.
pub(super) fn attend(look: &Linear, x: &Tensor, state: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let scale = (state.dim(1)? as f64).sqrt().recip();
    let fit = (look.forward(x)?.times(&state.unsqueeze(2)?)?.squeeze(2)? * scale)?;
    let weights = softmax(&mask_out(&fit, mask, -1e9)?, 1)?;
    Ok(x.broadcast_mul(&weights.unsqueeze(2)?)?.sum(1)?)
}

/// `ids [rows, tokens]` as vectors of `table`.
pub(super) fn look_up(table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (rows, tokens) = ids.dims2()?;
    Ok(table.index_select(&ids.flatten_all()?, 0)?.reshape((rows, tokens, ()))?)
}
