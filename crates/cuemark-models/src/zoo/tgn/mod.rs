//! TGN: reads the video once with recurrent cells, re-reads the query at every clip, and scores spans that end there.
//! Chen et al., "Temporally Grounding Natural Sentence in Video", EMNLP 2018.
//!
//! The paper has no official code; this follows the public re-implementation. Differs from it: weights start from
//! PyTorch's defaults; padded words are masked in the attention (`padded_words = "published"` lets them take part); the
//! weight of a positive is counted in each batch unless `positive_weights` states it.

mod check;
mod config;
mod labels;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::functional::{mask_out, sigmoid, softmax};
use cuemark_tensor::recurrent::{Attending, attend_and_recur};
use cuemark_tensor::{MatrixProduct as _, Pass};

use crate::layers::{Linear, Recurrent, Ways, linear, real_steps, uniform};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

pub use config::{Between, Lengths, SentenceWays, TgnConfig};
use labels::weighted_loss;

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tgn",
    title: "TGN",
    paper: "Chen et al., Temporally Grounding Natural Sentence in Video, EMNLP 2018",
    family: Family::Anchor,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "one recurrent pass that scores, at every clip, the spans that end there",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "anchors = { first = 1, last = 100 }\nwindow = 128",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "charades-sta",
            settings: "anchors = { first = 3, last = 22 }\nwindow = 50\nsentence = \"both\"\npositive_iou = 0.85\n\
                       negative_iou = 0.15",
            visual: 4096,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "tacos",
            settings: "anchors = { first = 1, last = 32 }\nwindow = 60\npositive_iou = 0.5\nnegative_iou = 0.5\nnms = 0.3\n\
                       between = \"negative\"\ndropout = 0.3",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Tgn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TgnConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Tgn {
    config: TgnConfig,
    anchors: Vec<usize>,
    sentence: Recurrent,
    video: Recurrent,
    attention: WordAttention,
    interaction: Cell,
    score: Linear,
}

/// Additive attention over words, its first layer split by what it reads: only the state's part waits for the step before.
#[derive(Debug)]
struct WordAttention {
    from_state: Linear,
    from_clip: Linear,
    from_word: Linear,
    score: Linear,
}

/// One LSTM step; gates input, forget, cell, output.
#[derive(Debug)]
struct Cell {
    from_input: Linear,
    from_state: Linear,
}

/// States of the query, attention over words at every clip, and one logit per clip and anchor.
struct Forward {
    words: Tensor,
    attention: Tensor,
    logits: Tensor,
}

impl Tgn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TgnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let hidden = config.hidden;
        let (ways, sentence) = match config.sentence {
            SentenceWays::Forward => (Ways::Forward, hidden),
            SentenceWays::Both => (Ways::Both, 2 * hidden),
        };
        let anchors = config.anchors.list()?;
        // The reference's cells have one layer and no number.
        let cells = vb.clone().rename_f(|name| name.replace("_l0", ""));
        Ok(Self {
            sentence: Recurrent::lstm(given.words, hidden, 1, ways, cells.pp("sentence"))?,
            video: Recurrent::lstm(given.visual, hidden, 1, Ways::Forward, cells.pp("video"))?,
            attention: WordAttention::new(hidden, sentence, config.attention, &vb)?,
            interaction: Cell::new(hidden + sentence, hidden, &vb.pp("interactor"))?,
            score: linear(hidden, anchors.len(), vb.pp("pred"))?,
            anchors,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - visual `[batch, clips, d_visual]`; words `[batch, words, d_word]`, seen `[batch, words]`
    /// - logits of the result `[batch, clips, anchors]`, for spans that end at the clip
    fn forward(
        &self,
        visual: &Tensor,
        words: &Tensor,
        lengths: &[usize],
        seen: &Tensor,
        pass: &Pass,
    ) -> Result<Forward> {
        let p = self.config.dropout;
        let words = self.sentence.forward_packed(&pass.dropout(words, p)?, lengths)?;
        let words = pass.dropout(&words, p)?;
        let clips = self.video.forward(&pass.dropout(visual, p)?)?;
        let from_words = self.attention.from_word.forward(&words)?;
        let from_clips = self.attention.from_clip.forward(&clips)?;
        let batch = words.dim(0)?;
        let mut state = Tensor::zeros((batch, self.config.hidden), words.dtype(), words.device())?;
        let mut cell = state.clone();
        let (mut states, mut attention) = (Vec::new(), Vec::new());
        for step in 0..clips.dim(1)? {
            let at = |x: &Tensor| -> Result<Tensor> { Ok(x.narrow(1, step, 1)?.squeeze(1)?) };
            let query = (at(&from_clips)? + self.attention.from_state.forward(&state)?)?;
            let weights = self.attention.weights(&query, &from_words, seen)?;
            let context = weights.unsqueeze(1)?.times(&words)?.squeeze(1)?;
            let input = pass.dropout(&Tensor::cat(&[at(&clips)?, context], 1)?, p)?;
            (state, cell) = self.interaction.step(&input, &state, &cell)?;
            states.push(state.clone());
            attention.push(weights);
        }
        let logits = self.score.forward(&Tensor::stack(&states, 1)?)?;
        Ok(Forward { words, attention: Tensor::stack(&attention, 1)?, logits })
    }

    /// The logits alone, as [`Tgn::forward`] gives them while answering, without a gradient: what words would give to the gates is
    /// worked out before the first step.
    fn logits(&self, visual: &Tensor, words: &Tensor, lengths: &[usize], seen: &Tensor) -> Result<Tensor> {
        let words = self.sentence.forward_packed(words, lengths)?;
        let clips = self.video.forward(visual)?;
        let (from_input, from_state) = (&self.interaction.from_input, &self.interaction.from_state);
        let inputs = from_input.weight();
        let (of_clip, of_words) = (self.config.hidden, words.dim(2)?);
        let to_gates = |x: &Tensor, first: usize, width: usize| x.times(&inputs.narrow(1, first, width)?.t()?);
        let biases = (from_input.bias_or_zeros()? + from_state.bias_or_zeros()?)?;
        let gates = to_gates(&clips, 0, of_clip)?.broadcast_add(&biases)?;
        let steps = Tensor::cat(&[&self.attention.from_clip.forward(&clips)?, &gates], 2)?.transpose(0, 1)?;
        let from_words = [self.attention.from_word.forward(&words)?, to_gates(&words, of_clip, of_words)?];
        let states = attend_and_recur(Attending {
            steps: &steps,
            words: &Tensor::cat(&from_words, 2)?,
            state: &Tensor::cat(&[self.attention.from_state.weight(), from_state.weight()], 0)?,
            // A bias that all words share is nothing to their softmax.
            score: &self.attention.score.weight().flatten_all()?,
            seen,
        })?;
        Ok(self.score.forward(&states.transpose(0, 1)?)?)
    }

    fn of_batch(&self, visual: &Tensor, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let seen = self.config.padded_words.seen(&batch.queries.mask)?;
        self.forward(visual, &batch.queries.words, &batch.queries.lengths, &seen, pass)
    }

    /// Every candidate that begins in the video, best first, as fractions of its `length` real clips.
    fn rank(&self, scores: &[Vec<f32>], length: usize) -> Vec<Proposal> {
        let whole = length.max(1) as f64;
        let mut ranked = Vec::new();
        for (clip, row) in scores.iter().take(length).enumerate() {
            let end = clip as f64 + 0.5;
            for (anchor, score) in self.anchors.iter().zip(row) {
                let start = end - *anchor as f64;
                let span = NormSpan::new(start.max(0.0) / whole, end / whole);
                ranked.extend(span.filter(|_| start >= -0.5).map(|span| Proposal { span, score: *score }));
            }
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }
}

impl WordAttention {
    fn new(hidden: usize, words: usize, width: usize, vb: &VarBuilder) -> Result<Self> {
        let inputs = 2 * hidden + words;
        let first = vb.pp("att1");
        let weight = first.get_with_hints((width, inputs), "weight", uniform(inputs))?;
        let bias = first.get_with_hints(width, "bias", uniform(inputs))?;
        let part = |from: usize, len: usize| -> Result<Tensor> { Ok(weight.narrow(1, from, len)?.contiguous()?) };
        Ok(Self {
            from_state: Linear::new(part(0, hidden)?, None),
            from_clip: Linear::new(part(hidden, hidden)?, Some(bias)),
            from_word: Linear::new(part(2 * hidden, words)?, None),
            score: linear(width, 1, vb.pp("att2"))?,
        })
    }

    /// # Shapes
    /// - query `[batch, width]`, words `[batch, words, width]`, seen `[batch, words]`
    /// - returns `[batch, words]`, rows of sum 1
    fn weights(&self, query: &Tensor, words: &Tensor, seen: &Tensor) -> Result<Tensor> {
        let scores = self.score.forward(&words.broadcast_add(&query.unsqueeze(1)?)?.tanh()?)?.squeeze(D::Minus1)?;
        Ok(softmax(&mask_out(&scores, seen, -1e30)?, D::Minus1)?)
    }
}

impl Cell {
    fn new(inputs: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let part = |inputs: usize, what: &str| -> Result<Linear> {
            let weight = vb.get_with_hints((4 * hidden, inputs), &format!("weight_{what}"), uniform(hidden))?;
            Ok(Linear::new(weight, Some(vb.get_with_hints(4 * hidden, &format!("bias_{what}"), uniform(hidden))?)))
        };
        Ok(Self { from_input: part(inputs, "ih")?, from_state: part(hidden, "hh")? })
    }

    /// The next state and cell of `[batch, hidden]` ones.
    fn step(&self, input: &Tensor, state: &Tensor, cell: &Tensor) -> Result<(Tensor, Tensor)> {
        let gates = (self.from_input.forward(input)? + self.from_state.forward(state)?)?;
        let hidden = state.dim(1)?;
        let gate = |number: usize| gates.narrow(1, number * hidden, hidden);
        let cell = ((sigmoid(&gate(1)?)? * cell)? + (sigmoid(&gate(0)?)? * gate(2)?.tanh()?)?)?;
        Ok(((sigmoid(&gate(3)?)? * cell.tanh()?)?, cell))
    }
}

impl Model for Tgn {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::Cut { rows: self.config.clips },
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let stretch = self.stretch(batch, &batch.targets(CARD.name)?.spans, pass)?;
        let labels = self.labels(&stretch)?;
        let frames = real_steps(&stretch.lengths, stretch.visual.dim(1)?, stretch.visual.device())?;
        let logits = self.of_batch(&stretch.visual, batch, pass)?.logits;
        Ok(weighted_loss(&logits, &labels, &self.positive_weights(&labels, &frames)?, &frames)?.into())
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let (videos, queries) = (&batch.videos, &batch.queries);
        let seen = self.config.padded_words.seen(&queries.mask)?;
        let logits = self.logits(&videos.visual, &queries.words, &queries.lengths, &seen)?;
        let scores = sigmoid(&logits)?.to_vec3::<f32>()?;
        Ok(scores.iter().zip(&batch.videos.lengths).map(|(scores, length)| self.rank(scores, *length)).collect())
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}
