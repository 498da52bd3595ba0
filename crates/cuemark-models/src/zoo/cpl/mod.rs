//! CPL: several Gaussians over the video, ranked by how well hidden words are guessed from what each covers.
//! Zheng et al., "Weakly Supervised Temporal Sentence Grounding with Gaussian-based Contrastive Proposal Learning", CVPR 2022.
//!
//! As in the published code, clips are read from left to right only and words are hidden when answering too; there the choice
//! is random, here it follows from the query's id. Every sentence ends with an end to guess, in the code all but the longest of
//! a batch. The margin on ActivityNet has the authors' weight of 2, not the paper's 1.

mod check;
mod config;
mod losses;
#[cfg(test)]
mod tests;

use candle_core::{IndexOp, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::Rng;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use super::cnm::{even_steps, kept_clips, spans};
use crate::layers::{
    DualTransformer, Guessed, Linear, MaskedWords, Sequence, TransformerSize, guessing_loss, linear, place,
};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

pub use config::{CplConfig, Ranking};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cpl",
    title: "CPL",
    paper: "Zheng et al., Weakly Supervised Temporal Sentence Grounding with Gaussian-based Contrastive Proposal Learning, \
            CVPR 2022",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    idea: "several Gaussian masks, ranked by how well hidden words are guessed from each",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "vocabulary = 1112",
            visual: 1024,
            words: 300,
            millions: Some(5.4),
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "vocabulary = 8001\ngamma = 0.0\nrank_weight = 2.0\ndiversity_weight = 0.1\nlambda = 0.13",
            visual: 500,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Cpl::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CplConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Cpl {
    config: CplConfig,
    vocabulary: usize,
    asked: Tensor,
    clips: Linear,
    words: MaskedWords,
    transformer: DualTransformer,
    spans: Linear,
    guess: Linear,
}

/// Where the Gaussians lie, `[batch, proposals]` each.
struct Places {
    centre: Tensor,
    width: Tensor,
}

/// Masks over kept clips, `[batch × proposals, kept]`, proposals of one query together.
struct Masks {
    covered: Tensor,
    left: Tensor,
    right: Tensor,
}

/// Words as they are shown to the guesser and what it should say.
struct Shown<'a> {
    x: &'a Tensor,
    mask: &'a Tensor,
    ids: &'a Tensor,
}

/// Logits of words and how badly each guess fits, per row.
struct Guess {
    logits: Tensor,
    badness: Tensor,
}

impl Cpl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &CplConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let CplConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        let layers = [config.clip_layers, config.word_layers];
        Ok(Self {
            asked: vb.get_with_hints(given.visual, "pred_vec", Init::Uniform { lo: 0.0, up: 1.0 })?,
            clips: linear(given.visual, hidden, vb.pp("frame_fc"))?,
            words: MaskedWords::new(given.words, hidden, vb.clone())?,
            transformer: DualTransformer::new(size, layers, vb.pp("trans"))?,
            spans: linear(hidden, 2 * config.proposals, vb.pp("fc_gauss"))?,
            guess: linear(hidden, vocabulary, vb.pp("fc_comp"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// Clips and, after them, the place that answers: `[batch, clips + 1, hidden]`.
    fn read_clips(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (batch, _, width) = visual.dims3()?;
        let all = Tensor::cat(&[visual, &self.asked.broadcast_as((batch, 1, width))?], 1)?;
        Ok(self.clips.forward(&pass.dropout(&all, self.config.dropout)?)?)
    }

    /// # Shapes
    /// - clips `[batch, clips + 1, hidden]`, of which `mask [batch, clips]` are real; words `[batch, 1 + words, hidden]`
    fn places(&self, clips: &Tensor, mask: &Tensor, words: Sequence, pass: &Pass) -> Result<Places> {
        let placed = place(words.x)?;
        let mask = mask.pad_with_zeros(1, 0, 1)?; // nothing attends to the place that answers
        let clips = Sequence { x: clips, mask: &mask };
        let seen = self.transformer.clips_from_words(clips, Sequence { x: &placed, ..words }, pass)?;
        let last = seen.narrow(1, seen.dim(1)? - 1, 1)?.squeeze(1)?;
        let found = sigmoid(&self.spans.forward(&last)?)?.reshape(((), self.config.proposals, 2))?;
        Ok(Places { centre: found.i((.., .., 0))?, width: found.i((.., .., 1))? })
    }

    /// `growth`: how much of their full size the negatives have.
    fn masks(&self, places: &Places, kept: usize, growth: f64) -> Result<Masks> {
        let Places { centre, width } = places;
        let half = (width / 2.0)?;
        let left = ((centre - &half)?.relu()? * (0.5 * growth))?;
        let right = ((centre + &half)?.affine(-1.0, 1.0)?.relu()? * (0.5 * growth))?;
        let sigma = self.config.sigma;
        Ok(Masks {
            covered: bell(centre, width, kept, sigma)?,
            left: bell(&left, &left, kept, sigma / 2.0)?,
            right: bell(&right.affine(-1.0, 1.0)?, &right, kept, sigma / 2.0)?,
        })
    }

    /// Guesses the words of every query once for each of its rows in `weights [rows, kept]`, or once from everything.
    fn guess(&self, shown: &Shown, clips: Sequence, weights: Option<&Tensor>, pass: &Pass) -> Result<Guess> {
        let times = match weights {
            Some(weights) => weights.dim(0)? / shown.ids.dim(0)?.max(1),
            None => 1,
        };
        let (x, mask) = (repeat(clips.x, times)?, repeat(clips.mask, times)?);
        let (words, word_mask) = (repeat(shown.x, times)?, repeat(shown.mask, times)?);
        let words = Sequence { x: &words, mask: &word_mask };
        let decoded = self.transformer.words_from_clips(words, Sequence { x: &x, mask: &mask }, weights, pass)?;
        let logits = self.guess.forward(&decoded.x)?;
        let badness = guessing_loss(&logits, &repeat(shown.ids, times)?, &word_mask)?;
        Ok(Guess { logits, badness })
    }

    /// The clips that guesses are made from, and which of them are real.
    fn keep(&self, clips: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let kept = Tensor::new(kept_clips(mask.dim(1)?, self.config.keep_every), clips.device())?;
        Ok((clips.contiguous()?.index_select(&kept, 1)?, mask.index_select(&kept, 1)?))
    }

    /// Proposals of each query, best first, from how badly words are guessed from each, `[batch, proposals]`.
    fn rank(&self, places: &Places, badness: &Tensor) -> Result<Vec<Vec<Proposal>>> {
        let spans = spans(&places.centre, &places.width)?;
        let rank = |(row, spans): (Vec<f32>, &[Option<cuemark_core::NormSpan>])| {
            let scored = spans.iter().zip(row).filter_map(|(span, bad)| Some(Proposal { span: (*span)?, score: -bad }));
            let mut ranked: Vec<Proposal> = scored.collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            match self.config.answer {
                Ranking::Loss => ranked,
                Ranking::Vote => vote(&ranked, |_, _| 1.0),
                Ranking::WeightedVote => vote(&ranked, |one, first| one.span.iou_hull(first.span)),
            }
        };
        let rows = badness.to_vec2::<f32>()?.into_iter();
        Ok(rows.zip(spans.chunks(self.config.proposals)).map(rank).collect())
    }
}

/// Reorders proposals by their overlap with all, each counted as `weight` of it and of the first says.
fn vote(ranked: &[Proposal], weight: impl Fn(&Proposal, &Proposal) -> f64) -> Vec<Proposal> {
    let Some(first) = ranked.first() else { return Vec::new() };
    let score =
        |one: &Proposal| ranked.iter().map(|other| one.span.iou_hull(other.span) * weight(other, first)).sum::<f64>();
    let mut voted: Vec<Proposal> = ranked.iter().map(|one| Proposal { score: score(one) as f32, ..*one }).collect();
    voted.sort_by(|a, b| b.score.total_cmp(&a.score));
    voted
}

/// Gaussians whose largest value on `kept` even steps is 1: `[batch, proposals]` to `[batch × proposals, kept]`.
fn bell(centre: &Tensor, width: &Tensor, kept: usize, sigma: f64) -> Result<Tensor> {
    let (centre, width) = (centre.flatten_all()?.unsqueeze(1)?, width.flatten_all()?.unsqueeze(1)?);
    let deviation = (width.maximum(0.01)? / sigma)?;
    let distance = even_steps(kept, centre.device())?.unsqueeze(0)?.broadcast_sub(&centre)?;
    let height = (distance.broadcast_div(&deviation)?.sqr()? * -0.5)?.exp()?;
    let top = height.gather(&height.argmax_keepdim(1)?, 1)?;
    Ok(height.broadcast_div(&top)?)
}

/// Every row `times` times in a row.
fn repeat(x: &Tensor, times: usize) -> Result<Tensor> {
    if times == 1 {
        return Ok(x.clone());
    }
    let mut shape = x.dims().to_vec();
    shape.insert(1, times);
    let repeated = x.unsqueeze(1)?.broadcast_as(shape)?.contiguous()?;
    Ok(repeated.flatten(0, 1)?)
}

impl Model for Cpl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBins { rows: self.config.clips },
            parses: true,
            spans: false,
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let guessed = Guessed::of(&batch.queries, self.vocabulary)?;
        let clips = self.read_clips(&batch.videos.visual, pass)?;
        let words = self.words.read(&guessed.words, self.config.dropout, pass)?;
        let hidden = match pass.draw(|rng| guessed.choose(Some(rng))) {
            Some(hidden) => hidden?,
            None => guessed.choose(None)?,
        };
        let places = self.places(&clips, &batch.videos.mask, Sequence { x: &words, mask: &guessed.mask }, pass)?;
        let (kept, real) = self.keep(&clips, &batch.videos.mask)?;
        let masks = self.masks(&places, kept.dim(1)?, self.growth(pass.epoch()))?;
        let (x, mask) = (self.words.hide(&words, &hidden)?, guessed.mask.narrow(1, 0, guessed.mask.dim(1)? - 1)?);
        let shown = Shown { x: &x, mask: &mask.contiguous()?, ids: &guessed.ids };
        let guess = |weights: Option<&Tensor>| self.guess(&shown, Sequence { x: &kept, mask: &real }, weights, pass);
        let (covered, whole) = (guess(Some(&masks.covered))?, guess(None)?);
        let (left, right) = (guess(Some(&masks.left))?, guess(Some(&masks.right))?);
        let losses = self.losses(&masks, &covered, &whole, [&left, &right])?;
        let total = (&losses.reconstruction + self.ranking_and_diversity(&losses)?)?;
        let rank = ((losses.whole + losses.left)? + losses.right)?;
        let parts = vec![("reconstruction", losses.reconstruction), ("ranking", rank), ("diversity", losses.diversity)];
        Ok(Loss { total, parts })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let guessed = Guessed::of(&batch.queries, self.vocabulary)?;
        let clips = self.read_clips(&batch.videos.visual, &pass)?;
        let words = self.words.read(&guessed.words, self.config.dropout, &pass)?;
        let places = self.places(&clips, &batch.videos.mask, Sequence { x: &words, mask: &guessed.mask }, &pass)?;
        let (kept, real) = self.keep(&clips, &batch.videos.mask)?;
        let masks = self.masks(&places, kept.dim(1)?, 1.0)?;
        // The same words are hidden whatever else is in the batch.
        let choose = |row: usize| -> Result<Tensor> {
            let one = Guessed {
                lengths: guessed.lengths[row..=row].to_vec(),
                weights: guessed.weights[row..=row].to_vec(),
                ..guessed.clone()
            };
            let id = batch.queries.ids.get(row).map(ToString::to_string).unwrap_or_default();
            Ok(one.choose(Some(&mut Rng::stream(0, &id)))?)
        };
        let hidden = Tensor::cat(&(0..guessed.lengths.len()).map(choose).collect::<Result<Vec<_>>>()?, 0)?;
        let (x, mask) = (self.words.hide(&words, &hidden)?, guessed.mask.narrow(1, 0, guessed.mask.dim(1)? - 1)?);
        let shown = Shown { x: &x, mask: &mask.contiguous()?, ids: &guessed.ids };
        let covered = self.guess(&shown, Sequence { x: &kept, mask: &real }, Some(&masks.covered), &pass)?;
        self.rank(&places, &covered.badness.reshape(((), self.config.proposals))?)
    }
}
