//! CNM: one Gaussian over the video; hidden words must be easier to guess from what it covers than from the whole video or
//! from the rest.
//! Zheng et al., "Weakly Supervised Video Moment Localization with Contrastive Negative Sample Mining", AAAI 2022.
//!
//! The published code steps twice per batch: everything but the mask generator on the reconstruction, then the mask generator
//! alone on the contrast. Here both happen in one step, with gradients kept apart in the same way: the two sets of parameters
//! never share one, so only the order within the step and the common clipping norm differ. Every sentence ends with an end to
//! guess, in the code all but the longest of a batch.

use candle_core::{D, DType, Device, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    Decoded, DualTransformer, Guessed, Linear, MaskedWords, Sequence, TransformerSize, guessing_loss, linear, place,
    sentence_mask,
};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task, fill_settings,
    read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cnm",
    title: "CNM",
    paper: "Zheng et al., Weakly Supervised Video Moment Localization with Contrastive Negative Sample Mining, AAAI 2022",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    bi_encoder: false,
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
    build: |table, given, vb| Ok(Box::new(Cnm::new(&read_settings("cnm", table)?, given, vb)?)),
    settings: |table| fill_settings::<CnmConfig>("cnm", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CnmConfig {
    /// Clips that every video is brought to. Default: 200
    pub clips: usize,
    /// One clip in this many is kept for guessing words. Default: 4
    pub keep_every: usize,
    /// Width of everything. Default: 256
    pub hidden: usize,
    /// Heads of the attention. Default: 4
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 512
    pub ffn: usize,
    /// Layers of the decoder of clips. Default: 3
    pub clip_layers: usize,
    /// Layers of the decoder of words. Default: 3
    pub word_layers: usize,
    /// The most frequent words that are guessed, padding included; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// How steeply the mask falls. Default: 5.0
    pub alpha: f64,
    /// The widest span, as a fraction of the video. Default: 1.0
    pub max_width: f64,
    /// By how much guessing from the whole video must be worse. Default: 0.1
    pub hard_margin: f64,
    /// By how much guessing from the rest must be worse. Default: 0.15
    pub easy_margin: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
}

impl Default for CnmConfig {
    fn default() -> Self {
        Self {
            clips: 200,
            keep_every: 4,
            hidden: 256,
            heads: 4,
            ffn: 512,
            clip_layers: 3,
            word_layers: 3,
            vocabulary: None,
            alpha: 5.0,
            max_width: 1.0,
            hard_margin: 0.1,
            easy_margin: 0.15,
            dropout: 0.1,
        }
    }
}

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

/// Everything but the layer that places the Gaussian.
#[derive(Debug)]
struct Body {
    clips: Linear,
    words: MaskedWords,
    transformer: DualTransformer,
    guess: Linear,
    dropout: f64,
}

/// Centre and width of every Gaussian, `[batch]`, and its value at every kept clip, `[batch, kept]`.
struct Gaussian {
    centre: Tensor,
    width: Tensor,
    mask: Tensor,
}

/// Guesses from what the Gaussian covers, from everything, and from the rest.
struct Guesses {
    covered: Decoded,
    covered_logits: Tensor,
    whole: Tensor,
    rest: Tensor,
}

/// How badly words are guessed, `[batch]` each.
struct Badness {
    covered: Tensor,
    whole: Tensor,
    rest: Tensor,
}

impl Cnm {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
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

impl Badness {
    fn reconstruction(&self) -> Result<Tensor> {
        Ok((self.covered.mean_all()? + self.whole.mean_all()?)?)
    }
}

impl Guesses {
    fn badness(&self, ids: &Tensor, mask: &Tensor) -> Result<Badness> {
        let badness = |logits: &Tensor| guessing_loss(logits, ids, mask);
        Ok(Badness {
            covered: badness(&self.covered_logits)?,
            whole: badness(&self.whole)?,
            rest: badness(&self.rest)?,
        })
    }
}

impl Body {
    fn new(config: &CnmConfig, given: &Given, vocabulary: usize, vb: &VarBuilder) -> Result<Self> {
        let CnmConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let layers = [config.clip_layers, config.word_layers];
        Ok(Self {
            clips: linear(given.visual, hidden, vb.pp("frame_fc"))?,
            words: MaskedWords::new(given.words, hidden, vb.clone())?,
            transformer: DualTransformer::new(size, layers, vb.pp("trans"))?,
            guess: linear(hidden, vocabulary, vb.pp("fc_rec"))?,
            dropout,
        })
    }

    fn read_clips(&self, visual: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.clips.forward(&pass.dropout(visual, self.dropout)?)?)
    }

    /// # Shapes
    /// - shown `[batch, words, hidden]`, clips `[batch, clips, hidden]`, mask `[batch, kept]`
    fn guess_all(&self, shown: Sequence, clips: Sequence, mask: &Tensor, every: usize, pass: &Pass) -> Result<Guesses> {
        let kept = Tensor::new(kept_clips(clips.x.dim(1)?, every), clips.x.device())?;
        let (x, real) = (clips.x.contiguous()?.index_select(&kept, 1)?, clips.mask.index_select(&kept, 1)?);
        let clips = Sequence { x: &x, mask: &real };
        let decode = |weights: Option<&Tensor>| self.transformer.words_from_clips(shown, clips, weights, pass);
        let covered = decode(Some(mask))?;
        Ok(Guesses {
            covered_logits: self.guess.forward(&covered.x)?,
            covered,
            whole: self.guess.forward(&decode(None)?.x)?,
            rest: self.guess.forward(&decode(Some(&mask.affine(-1.0, 1.0)?))?.x)?,
        })
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

/// The parameters of `vb`, through which no gradient flows. They share their memory with the originals and so follow them.
fn frozen<'a>(vb: &VarBuilder<'a>) -> VarBuilder<'a> {
    struct Frozen<'a>(VarBuilder<'a>);
    impl SimpleBackend for Frozen<'_> {
        fn get(&self, s: Shape, name: &str, init: Init, _: DType, _: &Device) -> candle_core::Result<Tensor> {
            Ok(self.0.get_with_hints(s, name, init)?.detach())
        }

        fn get_unchecked(&self, name: &str, dtype: DType, _: &Device) -> candle_core::Result<Tensor> {
            Ok(self.0.get_unchecked_dtype(name, dtype)?.detach())
        }

        fn contains_tensor(&self, name: &str) -> bool {
            self.0.contains_tensor(name)
        }
    }
    VarBuilder::from_backend(Box::new(Frozen(vb.clone())), DType::F32, vb.device().clone())
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

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = CnmConfig {
        clips: fixture.tensor("in.frames")?.dim(1)?,
        keep_every: fixture.number("frame_subsample")?,
        hidden: fixture.number("hidden_size")?,
        heads: fixture.number("DualTransformer.num_heads")?,
        ffn: fixture.shape("trans.decoder1.decoder_layers.0.fc1.bias")?.iter().product(),
        clip_layers: fixture.number("DualTransformer.num_decoder_layers1")?,
        word_layers: fixture.number("DualTransformer.num_decoder_layers2")?,
        vocabulary: Some(fixture.number("vocab_size")?),
        alpha: fixture.real("alpha")?,
        max_width: fixture.real("max_width")?,
        hard_margin: fixture.real("loss.beta_1")?,
        easy_margin: fixture.real("loss.beta_2")?,
        dropout: 0.0,
    };
    let (visual, words) = (fixture.input("frames")?, fixture.input("words_feat")?);
    let net = Cnm::new(&config, &Given::widths(visual.dim(2)?, words.dim(2)?, 0), vb.clone())?;
    let pass = Pass::answering();
    let slots = words.dim(1)?;
    let clip_mask = visual.narrow(2, 0, 1)?.squeeze(2)?.ones_like()?;
    let mask = sentence_mask(&fixture.counts("words_len")?, slots, visual.device())?;
    let clips = net.body.read_clips(&visual, &pass)?;
    // Slot 0 of the fixture's words is a place for the start, which reading puts there itself.
    let read = net.body.words.read(&words.narrow(1, 1, slots - 1)?, 0.0, &pass)?;
    let clips = Sequence { x: &clips, mask: &clip_mask };
    let gaussian = net.gaussian(&net.body, &net.span, clips, Sequence { x: &read, mask: &mask }, &pass)?;
    let shown = net.body.words.hide(&read, &fixture.input("masked_positions")?)?;
    let mask = mask.narrow(1, 0, slots - 1)?.contiguous()?;
    let guesses =
        net.body.guess_all(Sequence { x: &shown, mask: &mask }, clips, &gaussian.mask, config.keep_every, &pass)?;
    let badness = guesses.badness(&fixture.ids("words_id")?, &mask)?;
    let [hard, easy] = net.contrast(&badness)?;
    let (reconstruction, contrast) = (badness.reconstruction()?, (&hard + &easy)?);
    let half = (&gaussian.width / 2.0)?;
    let span = [(&gaussian.centre - &half)?.relu()?, (&gaussian.centre + &half)?.minimum(1.0)?];

    let mut trace = Trace::new();
    trace.out("center", &gaussian.centre);
    trace.out("width", &gaussian.width);
    trace.out("gauss_weight", &gaussian.mask);
    trace.out("span", &Tensor::stack(&span, D::Minus1)?);
    trace.out("words_mask", &mask);
    trace.out("words_logit", &guesses.covered_logits);
    trace.out("hard_neg_words_logit", &guesses.whole);
    trace.out("easy_neg_words_logit", &guesses.rest);
    if let Some(attention) = &guesses.covered.attention {
        trace.out("attn_weight", attention);
    }
    trace.loss("nll", &badness.covered.mean_all()?);
    trace.loss("neg_nll", &badness.whole.mean_all()?);
    trace.loss("reconstruction", &reconstruction);
    trace.loss("hard_neg", &hard);
    trace.loss("easy_neg", &easy);
    trace.loss("ivc", &contrast);
    trace.loss("sum_used_for_grad", &(reconstruction + contrast)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::Params;

    use super::*;
    use crate::testing::{TOY, gap, overfit};

    fn config() -> CnmConfig {
        CnmConfig {
            clips: 8,
            keep_every: 2,
            hidden: 16,
            heads: 2,
            ffn: 24,
            clip_layers: 1,
            word_layers: 1,
            dropout: 0.0,
            ..CnmConfig::default()
        }
    }

    fn net(params: &Params) -> Cnm {
        Cnm::new(&config(), &TOY.given(), params.builder()).unwrap()
    }

    #[test]
    fn every_query_gets_one_span_inside_its_video() {
        let ranked = net(&Params::seeded(1, &Device::Cpu)).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 1);
            assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
        }
    }

    #[test]
    fn padded_words_change_nothing() {
        let (batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
        let longer = batch.with_longer_words(3);
        for (short, long) in net.propose(&batch).unwrap().iter().zip(net.propose(&longer).unwrap()) {
            assert!((short[0].span.start() - long[0].span.start()).abs() < 1e-5);
        }
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-4);
    }

    #[test]
    fn spans_are_neither_asked_for_nor_read() {
        let (mut batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
        assert!(!net.input().spans);
        let loss = |batch: &Batch| net.loss(batch, &Pass::training(0, 1, Rng::new(3))).unwrap().total;
        let with = loss(&batch);
        batch.targets = None;
        assert_eq!(gap(&with, &loss(&batch)), 0.0);
    }

    #[test]
    fn the_contrast_moves_the_mask_generator_alone_and_the_reconstruction_all_else() {
        let params = Params::seeded(1, &Device::Cpu);
        let loss = net(&params).loss(&TOY.batch(1), &Pass::training(0, 1, Rng::new(3))).unwrap();
        for (part, loss) in &loss.parts {
            let gradients = loss.backward().unwrap();
            for (name, var) in params.vars() {
                let moves_mask = name.starts_with("fc_mask_gen");
                let reached = gradients.get(var.as_tensor()).is_some();
                assert_eq!(reached, moves_mask == (*part == "contrast"), "{part}: {name}");
            }
        }
    }

    #[test]
    fn kept_clips_reach_from_the_first_to_the_last() {
        assert_eq!(kept_clips(24, 4), [0, 4, 9, 13, 18, 23]);
        assert_eq!(kept_clips(200, 4).len(), 50);
        assert_eq!(kept_clips(200, 4)[49], 199);
        assert_eq!(kept_clips(3, 4), [0]);
    }

    #[test]
    fn hidden_words_of_one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Cnm::new(&config(), &TOY.given(), vb)?)) };
        let (_, first, last) = overfit(build, &batch, 100, 1e-2);
        assert!(last < 0.6 * first, "{first} to {last}");
    }
}
