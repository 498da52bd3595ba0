//! WSSL: a localiser (sentence to span) and a captioner (span to sentence) teach each other; no span is ever given.
//! Duan et al., "Weakly Supervised Dense Event Captioning in Videos", NeurIPS 2018.
//!
//! Stage 0 trains the captioner on whole videos, stage 1 both in a cycle; every `localise_every`-th epoch of stage 1 trains the
//! choice of anchors instead. There the published code captions every anchor and scores the captions with METEOR; we take the
//! anchor under which the captioner finds the real sentence likeliest. Videos longer than `clips` are averaged to it instead of
//! being read by every second row. As published, the span sent to the captioner lacks the shift that the reported one has.

use candle_core::{D, DType, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{log_softmax, mask_out, sigmoid, softmax};
use cuemark_tensor::{Init, Pass};
use cuemark_text::Vocabulary;
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{BatchNorm, Linear, Recurrent, Running, Ways, last_step, linear, linear_no_bias, real_steps};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result, Supervision, Task,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "wssl",
    title: "WSSL",
    paper: "Duan et al., Weakly Supervised Dense Event Captioning in Videos, NeurIPS 2018",
    family: Family::Weak,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Weak,
    bi_encoder: false,
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
    build: |table, given, vb| Ok(Box::new(Wssl::new(&read_settings("wssl", table)?, given, vb)?)),
    settings: |table| fill_settings::<WsslConfig>("wssl", table),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WsslConfig {
    /// The most clips of a video; longer ones are averaged to it. Default: 256
    pub clips: usize,
    /// Width of the recurrent networks. Default: 512
    pub hidden: usize,
    /// Layers of each. Default: 2
    pub layers: usize,
    /// Width of a word's vector in the localiser. Default: 512
    pub localiser_words: usize,
    /// Width of a word's vector in the captioner. Default: 512
    pub captioner_words: usize,
    /// The most frequent words that are known; rarer ones count as unknown. Default: all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// How far an anchor can be moved, as a fraction of the video. Default: 0.3
    pub reach: f64,
    /// How sharply a span ends for the captioner, per clip. Default: 0.1
    pub sharpness: f64,
    /// Noise on the span sent to the captioner, either way. Default: 0.01
    pub noise: f64,
    /// Weight of finding the same span again. Default: 0.01
    pub cycle_weight: f64,
    /// Every so many epochs of stage 1 train the choice of anchors. Default: 5
    pub localise_every: usize,
    /// Share of values that training drops. Default: 0.3
    pub dropout: f64,
}

impl Default for WsslConfig {
    fn default() -> Self {
        Self {
            clips: 256,
            hidden: 512,
            layers: 2,
            localiser_words: 512,
            captioner_words: 512,
            vocabulary: None,
            reach: 0.3,
            sharpness: 0.1,
            noise: 0.01,
            cycle_weight: 0.01,
            localise_every: 5,
            dropout: 0.3,
        }
    }
}

/// The latest end, so that it always lies within the last clip.
const LATEST: f64 = 1.0 - 1e-4;

/// Centre and width of every anchor, as fractions.
fn anchors() -> Vec<[f32; 2]> {
    let of_width = |width: f32, centres: &[f32]| centres.iter().map(|centre| [*centre, width]).collect::<Vec<_>>();
    let eighths: Vec<f32> = (0..8).map(|number| (2 * number + 1) as f32 / 16.0).collect();
    [
        of_width(0.5, &[0.25, 0.5, 0.75]),
        of_width(1.0 / 3.0, &[1.0 / 6.0, 0.5, 5.0 / 6.0]),
        of_width(0.125, &eighths),
        of_width(1.0, &[0.5]),
    ]
    .concat()
}

/// The network.
#[derive(Debug)]
pub struct Wssl {
    config: WsslConfig,
    vocabulary: usize,
    localiser: Localiser,
    captioner: Captioner,
}

/// Rows of features, `[videos, clips, width]`, with the number of real ones of each.
#[derive(Clone, Copy)]
struct Clips<'a> {
    x: &'a Tensor,
    mask: &'a Tensor,
    lengths: &'a [usize],
}

/// Sentences between their markers: numbers and 1 where one is real, `[sentences, tokens]`, and the video of each.
#[derive(Clone)]
struct Sentences {
    ids: Tensor,
    mask: Tensor,
    lengths: Vec<usize>,
    video: Tensor,
}

impl Wssl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
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

impl Sentences {
    /// The queries of a batch between a start and an end; words past `vocabulary` become the unknown word.
    fn of(queries: &QueryBatch, vocabulary: usize) -> Result<Self> {
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

    fn with_lengths(ids: Tensor, lengths: Vec<usize>, video: Tensor) -> Result<Self> {
        let mask = real_steps(&lengths, ids.dim(1)?, ids.device())?;
        Ok(Self { ids, mask, lengths, video })
    }

    /// Minus the log probability of each sentence, `[sentences]`, from `said [sentences, tokens, vocabulary]`.
    fn unsaid(&self, said: &Tensor) -> Result<Tensor> {
        let right = said.gather(&self.ids.unsqueeze(2)?, 2)?.squeeze(2)?;
        Ok((right * &self.mask)?.sum(1)?.neg()?)
    }

    /// What was said instead, up to the first end.
    fn said(&self, said: &Tensor) -> Result<Self> {
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
struct Reader {
    recurrent: Recurrent,
    short_cut: Option<Linear>,
    dropout: f64,
}

/// What was read at every step: outputs `[rows, steps, hidden]` and the states of all layers, `[rows, steps, layers × hidden]`.
struct Read {
    outputs: Tensor,
    states: Tensor,
}

impl Reader {
    fn of_clips(config: &WsslConfig, visual: usize, vb: &VarBuilder) -> Result<Self> {
        let short_cut = Some(linear_no_bias(visual, config.hidden, vb.pp("linear"))?);
        Ok(Self { short_cut, ..Self::of_words(config, visual, vb)? })
    }

    fn of_words(config: &WsslConfig, inputs: usize, vb: &VarBuilder) -> Result<Self> {
        let recurrent = Recurrent::gru(inputs, config.hidden, config.layers, Ways::Forward, vb.pp("rnn_cell"))?;
        Ok(Self { recurrent, short_cut: None, dropout: config.dropout })
    }

    fn read(&self, x: &Tensor, pass: &Pass) -> Result<Read> {
        let layers = self.recurrent.every_layer(x, Running { dropout: self.dropout, ..Running::default() }, pass)?;
        let last = layers.last().cloned().unwrap_or_else(|| x.clone());
        let outputs = match &self.short_cut {
            Some(short_cut) => (last + short_cut.forward(x)?)?,
            None => last,
        };
        Ok(Read { outputs, states: Tensor::cat(&layers, 2)? })
    }
}

/// Finds the span of a sentence among anchors.
#[derive(Debug)]
struct Localiser {
    anchors: Vec<[f32; 2]>,
    reach: f64,
    dropout: f64,
    video: Reader,
    words: Tensor,
    text: Reader,
    look_at_text: Linear,
    look_at_video: Linear,
    norms: [BatchNorm; 2],
    mix: Linear,
    combine: [(Linear, BatchNorm); 2],
    choose: Linear,
    refine: Linear,
}

/// Logits `[sentences, anchors]` and how each anchor would be moved, `[sentences, anchors, 2]`, both at least 0.
struct Localised {
    logits: Tensor,
    refine: Tensor,
}

impl Localiser {
    fn new(
        config: &WsslConfig,
        anchors: Vec<[f32; 2]>,
        visual: usize,
        vocabulary: usize,
        vb: &VarBuilder,
    ) -> Result<Self> {
        let (hidden, states) = (config.hidden, config.hidden * config.layers);
        let mixer = vb.pp("feature_mixer");
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let combine = |number: usize| -> Result<(Linear, BatchNorm)> {
            let vb = mixer.pp("combiner");
            let product = linear_no_bias(3 * hidden, 3 * hidden, vb.pp(number))?;
            Ok((product, BatchNorm::new(3 * hidden, vb.pp(number + 1))?))
        };
        Ok(Self {
            video: Reader::of_clips(config, visual, &vb.pp("video_encoder"))?,
            words: vb.pp("sent_embedding").get_with_hints((vocabulary, config.localiser_words), "weight", normal)?,
            text: Reader::of_words(config, config.localiser_words, &vb.pp("text_encoder"))?,
            look_at_text: linear_no_bias(hidden, states, mixer.pp("text_attention.linear"))?,
            look_at_video: linear_no_bias(hidden, states, mixer.pp("video_attention.linear"))?,
            norms: [
                BatchNorm::new(hidden, mixer.pp("text_batch_norm"))?,
                BatchNorm::new(hidden, mixer.pp("video_batch_norm"))?,
            ],
            mix: linear(2 * hidden, hidden, mixer.pp("fc"))?,
            combine: [combine(0)?, combine(4)?],
            choose: linear(3 * hidden, anchors.len(), vb.pp("predictor"))?,
            refine: linear(3 * hidden, 2 * anchors.len(), vb.pp("refiner"))?,
            anchors,
            reach: config.reach,
            dropout: config.dropout,
        })
    }

    fn localise(&self, clips: Clips, sentences: &Sentences, pass: &Pass) -> Result<Localised> {
        let video = self.video.read(clips.x, pass)?;
        let text = self.text.read(&look_up(&self.words, &sentences.ids)?, pass)?;
        let of_sentences = |x: &Tensor| x.contiguous()?.index_select(&sentences.video, 0);
        let video_end = of_sentences(&last_step(&video.states, clips.lengths)?)?;
        let text_end = last_step(&text.states, &sentences.lengths)?;
        let (outputs, mask) = (of_sentences(&video.outputs)?, of_sentences(clips.mask)?);
        let text = attend(&self.look_at_text, &text.outputs, &video_end, &sentences.mask)?;
        let video = attend(&self.look_at_video, &outputs, &text_end, &mask)?;
        let (text, video) = (self.norms[0].forward(&text, pass)?, self.norms[1].forward(&video, pass)?);
        let mixed = self.mix.forward(&Tensor::cat(&[&text, &video], 1)?)?;
        let mut x = Tensor::cat(&[mixed, (&text * &video)?, (&text + &video)?], 1)?;
        for (number, (product, norm)) in self.combine.iter().enumerate() {
            x = norm.forward(&product.forward(&x)?, pass)?.relu()?;
            if number == 0 {
                x = pass.dropout(&x, self.dropout)?;
            }
        }
        let refine = (sigmoid(&self.refine.forward(&x)?)? * self.reach)?.reshape(((), self.anchors.len(), 2))?;
        Ok(Localised { logits: self.choose.forward(&x)?, refine })
    }
}

impl Localised {
    /// Centre and width of the best anchor of each sentence as it is moved, its centre shifted back by `shift`, `[sentences, 2]`.
    fn moved(&self, localiser: &Localiser, shift: f64) -> Result<Tensor> {
        let best = self.logits.detach().argmax(1)?.to_vec1::<u32>()?;
        let rows = (0..best.len()).map(|row| (row * localiser.anchors.len()) as u32 + best[row]);
        let rows = Tensor::new(rows.collect::<Vec<_>>(), self.refine.device())?;
        let refined = self.refine.flatten_to(1)?.index_select(&rows, 0)?;
        let place = best.iter().flat_map(|best| {
            let [centre, width] = localiser.anchors[*best as usize];
            [centre - shift as f32, width]
        });
        Ok((refined + Tensor::from_vec(place.collect::<Vec<_>>(), (best.len(), 2), self.refine.device())?)?)
    }

    /// Every anchor as it is moved, best first.
    fn rank(&self, localiser: &Localiser) -> Result<Vec<Vec<Proposal>>> {
        let logits = softmax(&self.logits, 1)?.to_vec2::<f32>()?.into_iter();
        let rank = |(scores, refined): (Vec<f32>, Vec<Vec<f32>>)| {
            let scored = scores.into_iter().zip(refined).zip(&localiser.anchors);
            let mut ranked: Vec<Proposal> = scored
                .filter_map(|((score, moved), anchor)| {
                    let [centre, width] = [moved[0] + anchor[0], moved[1] + anchor[1]].map(f64::from);
                    let centre = centre - localiser.reach / 2.0;
                    let start = (centre - width / 2.0).max(0.0);
                    Some(Proposal { span: NormSpan::new(start, (centre + width / 2.0).min(LATEST))?, score })
                })
                .collect();
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
            ranked
        };
        Ok(logits.zip(self.refine.to_vec3::<f32>()?).map(rank).collect())
    }
}

/// What `state [rows, states]` sees in `x [rows, steps, hidden]`: `[rows, hidden]`.
fn attend(look: &Linear, x: &Tensor, state: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let scale = (state.dim(1)? as f64).sqrt().recip();
    let fit = (look.forward(x)?.times(&state.unsqueeze(2)?)?.squeeze(2)? * scale)?;
    let weights = softmax(&mask_out(&fit, mask, -1e9)?, 1)?;
    Ok(x.broadcast_mul(&weights.unsqueeze(2)?)?.sum(1)?)
}

/// `ids [rows, tokens]` as vectors of `table`.
fn look_up(table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (rows, tokens) = ids.dims2()?;
    Ok(table.index_select(&ids.flatten_all()?, 0)?.reshape((rows, tokens, ()))?)
}

/// Says what happens in a span.
#[derive(Debug)]
struct Captioner {
    video: Reader,
    words: Tensor,
    speaker: Recurrent,
    out: Linear,
    hidden: usize,
    layers: usize,
    sharpness: f64,
    dropout: f64,
}

/// How much each clip lies left of a span, in it and right of it, `[spans, clips, 1]`.
struct SoftMasks {
    left: Tensor,
    inside: Tensor,
    right: Tensor,
}

impl SoftMasks {
    /// `span [spans, 2]`: centre and width in **clips**; mask `[spans, clips]`, 1 where there is a clip.
    fn new(span: &Tensor, mask: &Tensor, sharpness: f64) -> Result<Self> {
        let places = Tensor::arange(0f32, mask.dim(1)? as f32, span.device())?.unsqueeze(0)?;
        let (centre, half) = (span.narrow(1, 0, 1)?, (span.narrow(1, 1, 1)? / 2.0)?);
        let after = |edge: &Tensor| -> Result<Tensor> { Ok((places.broadcast_sub(edge)? * sharpness)?) };
        let (start, end) = (after(&(&centre - &half)?)?, after(&(&centre + &half)?)?);
        let masked = |x: Tensor| -> Result<Tensor> { Ok((x * mask)?.unsqueeze(2)?) };
        Ok(Self {
            inside: masked((sigmoid(&start)? - sigmoid(&end)?)?)?,
            left: masked(sigmoid(&start.neg()?)?)?,
            right: masked(sigmoid(&end)?)?,
        })
    }
}

impl Captioner {
    fn new(config: &WsslConfig, visual: usize, vocabulary: usize, vb: &VarBuilder) -> Result<Self> {
        let WsslConfig { hidden, layers, captioner_words, .. } = *config;
        let decoder = vb.pp("decoder");
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        let inputs = captioner_words + 3 * hidden;
        Ok(Self {
            video: Reader::of_clips(config, visual, &vb.pp("video_encoder"))?,
            words: decoder.pp("embedding").get_with_hints((vocabulary, captioner_words), "weight", normal)?,
            speaker: Recurrent::gru(inputs, hidden, layers, Ways::Forward, decoder.pp("rnn_cell"))?,
            out: linear(hidden, vocabulary, decoder.pp("output_layer"))?,
            hidden,
            layers,
            sharpness: config.sharpness,
            dropout: config.dropout,
        })
    }

    /// Log probabilities of every next word given the real ones before it, `[sentences, tokens, vocabulary]`, zero at the start.
    ///
    /// # Shapes
    /// - span `[sentences, 2]`, centre and width as fractions of the real clips
    fn say(&self, clips: Clips, sentences: &Sentences, span: &Tensor, pass: &Pass) -> Result<Tensor> {
        let read = self.video.read(clips.x, pass)?;
        let of_sentences = |x: &Tensor| x.contiguous()?.index_select(&sentences.video, 0);
        let (outputs, states, mask) =
            (of_sentences(&read.outputs)?, of_sentences(&read.states)?, of_sentences(clips.mask)?);
        let rows = mask.sum_keepdim(1)?;
        let masks = SoftMasks::new(&span.broadcast_mul(&rows)?, &mask, self.sharpness)?;
        let context = |mask: &Tensor| -> Result<Tensor> {
            Ok(outputs.broadcast_mul(mask)?.sum(1)?.broadcast_div(&(mask.sum(1)? + 1e-4)?)?)
        };
        let context = Tensor::cat(&[context(&masks.left)?, context(&masks.inside)?, context(&masks.right)?], 1)?;
        let start = self.states_at_end(&states, span, &rows)?;
        let (count, tokens) = sentences.ids.dims2()?;
        let before = look_up(&self.words, &sentences.ids.narrow(1, 0, tokens - 1)?.contiguous()?)?;
        let context = context.unsqueeze(1)?.broadcast_as((count, tokens - 1, 3 * self.hidden))?;
        let x = Tensor::cat(&[before, context.contiguous()?], 2)?;
        let running = Running { start: Some(&start), dropout: self.dropout, ..Running::default() };
        let spoken = self.speaker.every_layer(&x, running, pass)?.pop().unwrap_or(x);
        let log = log_softmax(&self.out.forward(&pass.dropout(&spoken, self.dropout)?)?, D::Minus1)?;
        Ok(log.pad_with_zeros(1, 1, 0)?)
    }

    /// The states of each layer at the clip where the span ends; which clip that is has no gradient.
    fn states_at_end(&self, states: &Tensor, span: &Tensor, rows: &Tensor) -> Result<Vec<Tensor>> {
        let steps = states.dim(1)?;
        let spans = span.detach().to_vec2::<f32>()?.into_iter().zip(rows.flatten_all()?.to_vec1::<f32>()?);
        let end = |(number, (span, rows)): (usize, (Vec<f32>, f32))| {
            let end = (span[0] + span[1] / 2.0).clamp(0.0, LATEST as f32);
            (number * steps) as u32 + (end * rows).floor() as u32
        };
        let at = Tensor::new(spans.enumerate().map(end).collect::<Vec<_>>(), states.device())?;
        let states = states.flatten_to(1)?.index_select(&at, 0)?;
        let layer = |number: usize| Ok(states.narrow(1, number * self.hidden, self.hidden)?.contiguous()?);
        (0..self.layers).map(layer).collect()
    }
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

/// The supervised loss of the published code: the anchor that overlaps the span best, and how it would have to be moved.
struct Supervised {
    labels: Vec<u32>,
    deltas: Vec<f32>,
}

impl Supervised {
    /// `spans` as fractions.
    fn new(anchors: &[[f32; 2]], spans: &[NormSpan]) -> Self {
        let mut found = Self { labels: Vec::new(), deltas: Vec::new() };
        for span in spans {
            let bounds = |[centre, width]: [f32; 2]| [centre - width / 2.0, centre + width / 2.0].map(f64::from);
            let overlap = |anchor: &[f32; 2]| {
                let [start, end] = bounds(*anchor);
                NormSpan::new(start, end).map_or(0.0, |anchor| anchor.iou_hull(*span))
            };
            let mut best = (0, f64::MIN);
            for (number, anchor) in anchors.iter().enumerate() {
                if overlap(anchor) > best.1 {
                    best = (number, overlap(anchor));
                }
            }
            let [start, end] = anchors.get(best.0).map_or([0.0, 1.0], |anchor| bounds(*anchor));
            let (start, end) = (start - span.start(), end - span.end());
            found.labels.push(best.0 as u32);
            found.deltas.extend([start.midpoint(end) as f32, (end - start) as f32]);
        }
        found
    }

    fn loss(&self, localised: &Localised, weight: f64) -> Result<Tensor> {
        let device = localised.logits.device();
        let (count, anchors) = localised.logits.dims2()?;
        let labels = Tensor::from_vec(self.labels.clone(), (count, 1), device)?;
        let rows = self.labels.iter().enumerate().map(|(row, label)| (row * anchors) as u32 + label);
        let moved = localised.refine.flatten_to(1)?.index_select(&Tensor::new(rows.collect::<Vec<_>>(), device)?, 0)?;
        let deltas = Tensor::from_vec(self.deltas.clone(), (count, 2), device)?;
        let distance = (moved - deltas)?.abs()?.mean_all()?;
        Ok((choice_loss(&localised.logits, &labels)? + (distance * weight)?)?)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = WsslConfig {
        hidden: fixture.number("hidden")?,
        layers: fixture.number("rnn_layers")?,
        localiser_words: fixture.number("embedding_sl")?,
        captioner_words: fixture.number("embedding_cg")?,
        reach: fixture.real("regressor_scale")?,
        sharpness: fixture.real("softmask_scale")?,
        dropout: 0.0,
        ..WsslConfig::default()
    };
    let visual = fixture.input("video_feat")?;
    let (width, vocabulary) = (visual.dim(2)?, fixture.number("vocab")?);
    let anchors = fixture.input("anchors")?.to_vec2::<f32>()?.iter().map(|pair| [pair[0], pair[1]]).collect();
    let localiser = Localiser::new(&config, anchors, width, vocabulary, &vb.pp("sl"))?;
    let captioner = Captioner::new(&config, width, vocabulary, &vb.pp("cg"))?;
    let sizes = fixture.input("video_length")?.to_vec2::<f32>()?;
    let lengths: Vec<usize> = sizes.iter().map(|size| size[0] as usize).collect();
    let mask = fixture.input("video_mask")?.squeeze(2)?;
    let clips = Clips { x: &visual, mask: &mask, lengths: &lengths };
    let video = fixture.ids("gather_index")?;
    let sentences =
        |name: &str| Sentences::with_lengths(fixture.ids(name)?, fixture.counts("sentence_length")?, video.clone());
    let pass = Pass::answering();
    let localised = localiser.localise(clips, &sentences("sentence")?, &pass)?;
    let captions = sentences("caption")?;
    let said = captioner.say(clips, &captions, &fixture.input("caption_segment_cw")?, &pass)?;
    let soft = SoftMasks::new(&fixture.input("mask_cw")?.unsqueeze(0)?, &mask.narrow(0, 0, 1)?, config.sharpness)?;
    let seconds = |row: &u32| f64::from(sizes.get(*row as usize).and_then(|size| size.get(1)).copied().unwrap_or(1.0));
    let durations: Vec<f64> = video.to_vec1::<u32>()?.iter().map(seconds).collect();
    let truth = fixture.input("segment_seconds")?.to_vec2::<f32>()?;
    let truth = truth
        .iter()
        .zip(&durations)
        .filter_map(|(span, seconds)| NormSpan::new(f64::from(span[0]) / seconds, f64::from(span[1]) / seconds));
    let supervised = Supervised::new(&localiser.anchors, &truth.collect::<Vec<_>>());
    let ranked = localised.rank(&localiser)?;
    let best = ranked.iter().zip(&durations).filter_map(|(ranked, seconds)| Some((ranked.first()?.span, *seconds)));
    let best: Vec<f32> =
        best.flat_map(|(span, seconds)| [(span.start() * seconds) as f32, (span.end() * seconds) as f32]).collect();
    let count = durations.len();

    let mut trace = Trace::new();
    trace.out("anchor_logits", &localised.logits);
    trace.out("refine", &localised.refine);
    trace.out("segment_cw", &localised.moved(&localiser, 0.0)?);
    trace.out("segment_seconds", &Tensor::from_vec(best, (count, 2), visual.device())?);
    trace.out("anchor_label", &Tensor::new(supervised.labels.clone(), visual.device())?.to_dtype(DType::F32)?);
    trace.out("anchor_delta", &Tensor::from_vec(supervised.deltas.clone(), (count, 2), visual.device())?);
    trace.out("caption_logprob", &said);
    trace.out("mask_c", &soft.inside);
    trace.out("mask_l", &soft.left);
    trace.out("mask_r", &soft.right);
    trace.loss("caption", &captions.unsaid(&said)?.mean_all()?);
    trace.loss("supervised", &supervised.loss(&localised, fixture.real("regression_loss_weight")?)?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
    use cuemark_core::Rng;
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, gap, overfit};

    fn config() -> WsslConfig {
        WsslConfig {
            clips: 16,
            hidden: 12,
            layers: 2,
            localiser_words: 6,
            captioner_words: 5,
            dropout: 0.0,
            ..WsslConfig::default()
        }
    }

    fn net(params: &Params) -> Wssl {
        Wssl::new(&config(), &TOY.given(), params.builder()).unwrap()
    }

    #[test]
    fn every_anchor_is_proposed_once_inside_the_video() {
        let ranked = net(&Params::seeded(1, &Device::Cpu)).propose(&TOY.batch(1)).unwrap();
        for proposals in ranked {
            assert_eq!(proposals.len(), 15);
            assert!(proposals.iter().all(|one| one.span.start() >= 0.0 && one.span.end() <= 1.0));
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let (batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
        let longer = batch.with_longer_words(2).with_longer_videos(3);
        let first = |batch: &Batch| net.propose(batch).unwrap().iter().map(|ranked| ranked[0].span).collect::<Vec<_>>();
        for (short, long) in first(&batch).iter().zip(first(&longer)) {
            assert!((short.start() - long.start()).abs() < 1e-5);
        }
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-4);
    }

    #[test]
    fn spans_are_neither_asked_for_nor_read_in_any_stage() {
        let mut batch = TOY.batch(1);
        assert!(!net(&Params::seeded(1, &Device::Cpu)).input().spans);
        for (stage, epoch) in [(0, 1), (1, 1), (1, 5)] {
            let loss = |batch: &Batch| {
                let net = net(&Params::seeded(1, &Device::Cpu));
                net.loss(batch, &Pass::training(stage, epoch, Rng::new(3))).unwrap().total
            };
            let with = loss(&batch);
            let targets = batch.targets.take();
            assert_eq!(gap(&with, &loss(&batch)), 0.0);
            batch.targets = targets;
        }
    }

    #[test]
    fn soft_masks_share_every_clip_out() {
        let mask = Tensor::ones((1, 10), DType::F32, &Device::Cpu).unwrap();
        let masks = SoftMasks::new(&Tensor::new(&[[4f32, 3.0]], &Device::Cpu).unwrap(), &mask, 0.1).unwrap();
        let sum = ((masks.left + masks.inside).unwrap() + masks.right).unwrap().squeeze(2).unwrap();
        assert!(gap(&sum, &mask) < 1e-6);
    }

    #[test]
    fn sentences_of_one_batch_can_be_learnt_by_heart() {
        let build =
            |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Wssl::new(&config(), &TOY.given(), vb)?)) };
        let (_, first, last) = overfit(build, &TOY.batch(1), 60, 2e-2);
        assert!(last < 0.2 * first, "{first} to {last}");
    }

    #[test]
    fn the_second_stage_lowers_both_of_its_losses() {
        let (batch, params) = (TOY.batch(1), Params::seeded(1, &Device::Cpu));
        let net = net(&params);
        let vars = params.vars().into_iter().map(|(_, var)| var).collect();
        let mut optimiser =
            AdamW::new(vars, ParamsAdamW { lr: 1e-2, weight_decay: 0.0, ..ParamsAdamW::default() }).unwrap();
        for epoch in [1, 5] {
            let mut losses = Vec::new();
            for step in 0..30 {
                let loss = net.loss(&batch, &Pass::training(1, epoch, Rng::new(step))).unwrap().total;
                losses.push(loss.to_scalar::<f32>().unwrap());
                optimiser.backward_step(&loss).unwrap();
            }
            assert!(losses[29] < 0.7 * losses[0], "epoch {epoch}: {losses:?}");
        }
    }
}
