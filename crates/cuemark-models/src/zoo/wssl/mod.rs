//! WSSL: a localiser (sentence to span) and a captioner (span to sentence) teach each other; no span is ever given.
//! Duan et al., "Weakly Supervised Dense Event Captioning in Videos", NeurIPS 2018.
//!
//! Stage 0 trains the captioner on whole videos, stage 1 both in a cycle; every `localise_every`-th epoch of stage 1 trains the
//! choice of anchors instead. There the published code captions every anchor and scores the captions with METEOR; we take the
//! anchor under which the captioner finds the real sentence likeliest. Videos longer than `clips` are averaged to it instead of
//! being read by every second row. As published, the span sent to the captioner lacks the shift that the reported one has.

mod captioner;
mod check;
mod config;
mod localiser;
mod reader;
#[cfg(test)]
mod tests;

use candle_core::{D, Tensor};
use candle_nn::VarBuilder;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::log_softmax;

use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

use captioner::Captioner;
pub use config::WsslConfig;
use localiser::{Localiser, anchors};
use reader::{Clips, Sentences};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "wssl",
    title: "WSSL",
    paper: "Duan et al., Weakly Supervised Dense Event Captioning in Videos, NeurIPS 2018",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    idea: "localises a sentence by how well it can be said again from the span alone",
    full_sizes: &[
        FullSize {
            dataset: "activitynet-captions",
            settings: "vocabulary = 6000",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize { dataset: "charades-sta", settings: "vocabulary = 6000", visual: 1024, words: 300, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(Wssl::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<WsslConfig>(),
    check: check::check,
};

/// The network.
#[derive(Debug)]
pub struct Wssl {
    config: WsslConfig,
    vocabulary: usize,
    localiser: Localiser,
    captioner: Captioner,
}

impl Wssl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &WsslConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let vocabulary = config.vocabulary.unwrap_or(given.vocabulary);
        Ok(Self {
            localiser: Localiser::new(config, anchors(), given.visual, vocabulary, &vb.pp("sl"))?,
            captioner: Captioner::new(config, given.visual, vocabulary, &vb.pp("cg"))?,
            vocabulary,
            config: config.clone(),
        })
    }

    /// Stage 0: saying each sentence from its whole video.
    fn saying_all(&self, clips: Clips, sentences: &Sentences, pass: &Pass) -> Result<Tensor> {
        let whole = Tensor::new(&[0.5f32, 1.0], clips.x.device())?.broadcast_as((sentences.lengths.len(), 2))?;
        Ok(sentences.unsaid(&self.captioner.say(clips, sentences, &whole.contiguous()?, pass)?)?.mean_all()?)
    }

    /// Saying each sentence from the span it was localised to, and localising what was said to the same span.
    fn cycle(&self, clips: Clips, sentences: &Sentences, pass: &Pass) -> Result<[Tensor; 2]> {
        let span = self.localiser.localise(clips, sentences, pass)?.moved(&self.localiser, 0.0)?;
        let count = sentences.lengths.len() * 2;
        let noise = pass.draw(|rng| -> Vec<f32> {
            (0..count).map(|_| rng.between(-self.config.noise, self.config.noise) as f32).collect()
        });
        let noisy = match noise {
            Some(noise) => (&span + Tensor::from_vec(noise, span.shape(), span.device())?)?,
            None => span.clone(),
        };
        let said = self.captioner.say(clips, sentences, &noisy, pass)?;
        let again = self.localiser.localise(clips, &sentences.said(&said)?, pass)?.moved(&self.localiser, 0.0)?;
        Ok([sentences.unsaid(&said)?.mean_all()?, (again - noisy)?.sqr()?.mean_all()?])
    }

    /// The cross entropy of the anchors with the one from which each sentence is likeliest to be said.
    fn choosing(&self, clips: Clips, sentences: &Sentences, pass: &Pass) -> Result<Tensor> {
        let logits = self.localiser.localise(clips, sentences, pass)?.logits;
        let still = Pass::answering();
        let all = sentences.lengths.len();
        let unsaid = |anchor: &[f32; 2]| -> Result<Tensor> {
            let span = Tensor::new(anchor, clips.x.device())?.broadcast_as((all, 2))?.contiguous()?;
            Ok(sentences.unsaid(&self.captioner.say(clips, sentences, &span, &still)?)?.detach())
        };
        let unsaid = self.localiser.anchors.iter().map(unsaid).collect::<Result<Vec<_>>>()?;
        let best = Tensor::stack(&unsaid, 1)?.argmin_keepdim(1)?;
        choice_loss(&logits, &best)
    }
}

/// Minus the log probability of the chosen anchors, `[sentences, 1]`, mean.
fn choice_loss(logits: &Tensor, chosen: &Tensor) -> Result<Tensor> {
    Ok(log_softmax(logits, D::Minus1)?.gather(chosen, 1)?.mean_all()?.neg()?)
}

impl Model for Wssl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.clips },
            spans: false,
            ..Input::pairs(self.config.clips)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let clips = Clips { x: &batch.videos.visual, mask: &batch.videos.mask, lengths: &batch.videos.lengths };
        let sentences = Sentences::of(&batch.queries, self.vocabulary)?;
        if pass.stage() == 0 {
            return Ok(self.saying_all(clips, &sentences, pass)?.into());
        }
        if pass.epoch().is_multiple_of(self.config.localise_every.max(1)) {
            return Ok(self.choosing(clips, &sentences, pass)?.into());
        }
        let [caption, again] = self.cycle(clips, &sentences, pass)?;
        let total = (&caption + (&again * self.config.cycle_weight)?)?;
        Ok(Loss { total, parts: vec![("caption", caption), ("again", again)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let clips = Clips { x: &batch.videos.visual, mask: &batch.videos.mask, lengths: &batch.videos.lengths };
        let sentences = Sentences::of(&batch.queries, self.vocabulary)?;
        self.localiser.localise(clips, &sentences, &Pass::answering())?.rank(&self.localiser)
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        let cycle = pass.stage() > 0 && !pass.epoch().is_multiple_of(self.config.localise_every.max(1));
        if cycle && parameter.starts_with("sl.") && !parameter.starts_with("sl.refiner") { 0.1 } else { 1.0 }
    }
}
