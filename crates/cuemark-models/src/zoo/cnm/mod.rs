//! CNM: one Gaussian over the video; hidden words must be easier to guess from what it covers than from the whole video or
//! from the rest.
//! Zheng et al., "Weakly Supervised Video Moment Localization with Contrastive Negative Sample Mining", AAAI 2022.
//!
//! The published code steps twice per batch: everything but the mask generator on the reconstruction, then the mask generator
//! alone on the contrast. Here both happen in one step, with gradients kept apart in the same way: the two sets of parameters
//! never share one, so only the order within the step and the common clipping norm differ. Every sentence ends with an end to
//! guess, in the code all but the longest of a batch.

mod check;
mod config;
mod guesses;
#[cfg(test)]
mod tests;

use candle_core::{Device, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use crate::layers::{Guessed, Linear, Sequence, linear, place};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

pub use config::CnmConfig;
use guesses::{Badness, Body, frozen};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cnm",
    title: "CNM",
    paper: "Zheng et al., Weakly Supervised Video Moment Localization with Contrastive Negative Sample Mining, AAAI 2022",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    idea: "one Gaussian mask from which hidden words are guessed better than from the whole video or the rest",
    full_sizes: &[
        FullSize {
            dataset: "charades-sta",
            settings: "vocabulary = 1112\nalpha = 5.5\nmax_width = 0.45",
            visual: 1024,
            words: 300,
            millions: Some(5.4),
        },
        FullSize {
            dataset: "activitynet-captions",
            settings: "vocabulary = 8001",
            visual: 512,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Cnm::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CnmConfig>(),
    check: check::check,
};

/// The narrowest mask; spans themselves may be narrower.
const MIN_WIDTH: f64 = 0.1;

/// The network.
#[derive(Debug)]
pub struct Cnm {
    config: CnmConfig,
    vocabulary: usize,
    /// Learns from the reconstruction.
    body: Body,
    /// The same parameters, through which no gradient flows.
    still_body: Body,
    /// Learns from the contrast.
    span: Linear,
    /// The same parameters, through which no gradient flows.
    still_span: Linear,
}

/// Centre and width of every Gaussian, `[batch]`, and its value at every kept clip, `[batch, kept]`.
struct Gaussian {
    centre: Tensor,
    width: Tensor,
    mask: Tensor,
}

impl Cnm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &CnmConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        let still = frozen(&vb);
        Ok(Self {
            body: Body::new(config, given, vocabulary, &vb)?,
            still_body: Body::new(config, given, vocabulary, &still)?,
            span: linear(config.hidden, 2, vb.pp("fc_mask_gen"))?,
            still_span: linear(config.hidden, 2, still.pp("fc_mask_gen"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// The Gaussian that `layer` places from what `body` has read.
    ///
    /// # Shapes
    /// - clips `[batch, clips, hidden]` and words `[batch, 1 + words, hidden]`, both as `body` reads them
    fn gaussian(&self, body: &Body, layer: &Linear, clips: Sequence, words: Sequence, pass: &Pass) -> Result<Gaussian> {
        let placed = place(words.x)?;
        let seen = body.transformer.clips_from_words(clips, Sequence { x: &placed, ..words }, pass)?;
        let last = seen.narrow(1, seen.dim(1)? - 1, 1)?.squeeze(1)?;
        let found = sigmoid(&layer.forward(&last)?)?;
        let centre = found.narrow(1, 0, 1)?.squeeze(1)?;
        let width = (found.narrow(1, 1, 1)?.squeeze(1)? * self.config.max_width)?;
        let kept = kept_clips(clips.x.dim(1)?, self.config.keep_every).len();
        let distance = even_steps(kept, clips.x.device())?.unsqueeze(0)?.broadcast_sub(&centre.unsqueeze(1)?)?;
        let spread = width.maximum(MIN_WIDTH)?.unsqueeze(1)?;
        let mask = (distance.broadcast_div(&spread)?.sqr()? * -self.config.alpha)?.exp()?;
        Ok(Gaussian { centre, width, mask })
    }

    /// Reads a batch, hides words by `hidden` (or by the pass's own chance), places the Gaussian, guesses and compares.
    fn badness(&self, body: &Body, layer: &Linear, batch: &Batch, guessed: &Guessed, pass: &Pass) -> Result<Badness> {
        let clips = body.read_clips(&batch.videos.visual, pass)?;
        let words = body.words.read(&guessed.words, self.config.dropout, pass)?;
        let hidden = match pass.draw(|rng| guessed.choose(Some(rng))) {
            Some(hidden) => hidden?,
            None => guessed.choose(None)?,
        };
        let clips = Sequence { x: &clips, mask: &batch.videos.mask };
        let read = Sequence { x: &words, mask: &guessed.mask };
        let gaussian = self.gaussian(body, layer, clips, read, pass)?;
        let shown = body.words.hide(&words, &hidden)?;
        let mask = guessed.mask.narrow(1, 0, guessed.mask.dim(1)? - 1)?.contiguous()?;
        let shown = Sequence { x: &shown, mask: &mask };
        let guesses = body.guess_all(shown, clips, &gaussian.mask, self.config.keep_every, pass)?;
        guesses.badness(&guessed.ids, &mask)
    }

    /// The contrast with the whole video and with the rest.
    fn contrast(&self, badness: &Badness) -> Result<[Tensor; 2]> {
        let hinge = |other: &Tensor, margin: f64| -> Result<Tensor> {
            Ok(((&badness.covered - other)? + margin)?.relu()?.mean_all()?)
        };
        Ok([hinge(&badness.whole, self.config.hard_margin)?, hinge(&badness.rest, self.config.easy_margin)?])
    }
}

/// The clips that are kept for guessing: evenly spread from the first to the last, as a 32-bit `linspace` spreads them.
pub(super) fn kept_clips(clips: usize, every: usize) -> Vec<u32> {
    let kept = (clips / every.max(1)).max(1);
    let (last, steps) = (clips.saturating_sub(1) as f32, kept.saturating_sub(1));
    let step = if steps == 0 { 0.0 } else { last / steps as f32 };
    let place = |number: usize| {
        if number < kept / 2 || kept == 1 { step * number as f32 } else { last - step * (steps - number) as f32 }
    };
    (0..kept).map(|number| place(number) as u32).collect()
}

/// `count` numbers from 0 to 1.
pub(super) fn even_steps(count: usize, device: &Device) -> Result<Tensor> {
    let steps = count.saturating_sub(1).max(1) as f32;
    Ok(Tensor::new((0..count).map(|step| step as f32 / steps).collect::<Vec<_>>(), device)?)
}

/// Spans `centre ± width / 2` cut to the video.
pub(super) fn spans(centres: &Tensor, widths: &Tensor) -> Result<Vec<Option<NormSpan>>> {
    let pairs = centres.flatten_all()?.to_vec1::<f32>()?.into_iter().zip(widths.flatten_all()?.to_vec1::<f32>()?);
    let span = |(centre, width): (f32, f32)| {
        let (centre, half) = (f64::from(centre), f64::from(width) / 2.0);
        NormSpan::new((centre - half).max(0.0), (centre + half).min(1.0))
    };
    Ok(pairs.map(span).collect())
}

impl Model for Cnm {
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
        let learning = self.badness(&self.body, &self.still_span, batch, &guessed, pass)?;
        let placing = self.badness(&self.still_body, &self.span, batch, &guessed, pass)?;
        let reconstruction = learning.reconstruction()?;
        let [hard, easy] = self.contrast(&placing)?;
        let contrast = (hard + easy)?;
        let total = (&reconstruction + &contrast)?;
        Ok(Loss { total, parts: vec![("reconstruction", reconstruction), ("contrast", contrast)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let pass = Pass::answering();
        let guessed = Guessed::of(&batch.queries, self.vocabulary)?;
        let clips = self.body.read_clips(&batch.videos.visual, &pass)?;
        let words = self.body.words.read(&guessed.words, self.config.dropout, &pass)?;
        let clips = Sequence { x: &clips, mask: &batch.videos.mask };
        let words = Sequence { x: &words, mask: &guessed.mask };
        let gaussian = self.gaussian(&self.body, &self.span, clips, words, &pass)?;
        let spans = spans(&gaussian.centre, &gaussian.width)?;
        Ok(spans.into_iter().map(|span| span.map(|span| Proposal { span, score: 1.0 }).into_iter().collect()).collect())
    }
}
