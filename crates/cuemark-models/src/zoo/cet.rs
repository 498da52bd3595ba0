//! CET: clips and tokens in one transformer; every clip is scored as a start and as an end, as in extractive question answering.
//! Yang et al., "MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool", 2023
//! (appendix; a baseline without public code).
//!
//! What the paper leaves open is chosen as the model's card chooses it. The published labels never reach 1 and are all zero for
//! moments of one clip; `labels = "reaching"` counts the boundary itself. Trained on positives only, scores of different videos
//! are not comparable; that is the point of the paper and left as it is.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{bce_with_logits, sigmoid};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{
    BertSize, EncoderLayer, Linear, TextTraining, TokenEncoder, TransformerSize, best_clips, linear, linear_no_bias,
    nearest_clips, rank_boundaries, see_only,
};
use crate::{
    Batch, Code, Corpus, Family, FullSize, Given, Grid, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result,
    Supervision, Task, Text, VideoAnswer, VideoBatch, suppress,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "cet",
    title: "CET",
    paper: "Yang et al., MVMR: Evaluating Natural Language Video Localization Bias over Multiple Reliable Videos Pool, 2023",
    family: Family::Span,
    tasks: &[Task::SingleVideo, Task::Corpus],
    supervision: Supervision::Full,
    idea: "clips and tokens in one transformer, every clip scored as a start and as an end",
    full_sizes: &[
        FullSize { dataset: "activitynet-captions", settings: "clips = 64", visual: 500, words: 0, millions: None },
        FullSize { dataset: "charades-sta", settings: "clips = 16", visual: 4096, words: 0, millions: None },
        FullSize {
            dataset: "tacos",
            settings: "clips = 128\nnms = 0.4\ntext_training = { frozen_epochs = 40 }",
            visual: 4096,
            words: 0,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Cet::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CetConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CetConfig {
    /// Clips that every video is brought to. Default: 64
    pub clips: usize,
    /// Width of the transformer. Default: 512
    pub hidden: usize,
    /// Heads of the attention. Default: 8
    pub heads: usize,
    /// Width inside the feed-forward parts. Default: 2048
    pub ffn: usize,
    /// Layers of the transformer. Default: 6
    pub layers: usize,
    /// Layers that turn a clip into a score. Default: 3
    pub score_layers: usize,
    /// How steeply labels fall from the boundaries. Default: 10.0
    pub power: f64,
    /// What a boundary itself is worth. Default: published
    pub labels: Labels,
    /// Overlap above which the worse of two answers is dropped. Default: 0.5
    pub nms: f64,
    /// Share of values that training drops. Default: 0.1
    pub dropout: f64,
    /// The sentence encoder. Default: the published DistilBERT
    pub text: BertSize,
    /// How it is trained. Default: after 4 epochs, at a tenth of the rate
    pub text_training: TextTraining,
}

impl Default for CetConfig {
    fn default() -> Self {
        Self {
            clips: 64,
            hidden: 512,
            heads: 8,
            ffn: 2048,
            layers: 6,
            score_layers: 3,
            power: 10.0,
            labels: Labels::Published,
            nms: 0.5,
            dropout: 0.1,
            text: BertSize::default(),
            text_training: TextTraining { frozen_epochs: 4, ..TextTraining::default() },
        }
    }
}

/// What a boundary itself is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// `((n - 1) / n)^power` for a moment of n clips: less than 1, and 0 for a single clip.
    Published,
    /// 1.
    Reaching,
}

impl Labels {
    /// Worth of every clip as a start and as an end, `[moments, clips]` each; moments by their first and last clip.
    pub(super) fn of(self, moments: &[(usize, usize)], clips: usize, power: f64) -> (Vec<f32>, Vec<f32>) {
        let more = if self == Self::Reaching { 1 } else { 0 };
        let label = |first: usize, last: usize, clip: usize, distance: usize| {
            let share = (distance + more) as f64 / (last + 1 - first) as f64;
            if (first..=last).contains(&clip) { share.powf(power) as f32 } else { 0.0 }
        };
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (first, last) in moments {
            starts.extend((0..clips).map(|clip| label(*first, *last, clip, last.saturating_sub(clip))));
            ends.extend((0..clips).map(|clip| label(*first, *last, clip, clip.saturating_sub(*first))));
        }
        (starts, ends)
    }
}

/// The most moments that are kept of one video of a pool.
const MOMENTS_PER_VIDEO: usize = 100;

/// Logits of every clip as a start and as an end, `[queries, clips]` each.
pub(super) struct Boundaries {
    pub(super) starts: Tensor,
    pub(super) ends: Tensor,
}

/// Labels of the same shape.
pub(super) struct Truth {
    pub(super) starts: Tensor,
    pub(super) ends: Tensor,
}

impl Truth {
    pub(super) fn new(moments: &[(usize, usize)], labels: Labels, power: f64, like: &Tensor) -> Result<Self> {
        let clips = like.dim(1)?;
        let (starts, ends) = labels.of(moments, clips, power);
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, (moments.len(), clips), like.device());
        Ok(Self { starts: tensor(starts)?, ends: tensor(ends)? })
    }

    /// Mean cross entropy of starts and of ends.
    pub(super) fn losses(&self, found: &Boundaries) -> Result<[Tensor; 2]> {
        Ok([
            bce_with_logits(&found.starts, &self.starts)?.mean_all()?,
            bce_with_logits(&found.ends, &self.ends)?.mean_all()?,
        ])
    }
}

impl Boundaries {
    /// The loss of a batch whose spans are known.
    pub(super) fn loss(&self, batch: &Batch, model: &'static str, labels: Labels, power: f64) -> Result<Loss> {
        let clips = self.starts.dim(1)?;
        let moments: Vec<_> = batch.targets(model)?.spans.iter().map(|span| nearest_clips(*span, clips)).collect();
        let [starts, ends] = Truth::new(&moments, labels, power, &self.starts)?.losses(self)?;
        let total = ((&starts + &ends)? / 2.0)?;
        Ok(Loss { total, parts: vec![("starts", starts), ("ends", ends)] })
    }

    pub(super) fn rank(&self) -> Result<Vec<Vec<Proposal>>> {
        let (queries, clips) = self.starts.dims2()?;
        Ok(rank_boundaries(&sigmoid(&self.starts)?, &sigmoid(&self.ends)?, &vec![clips; queries])?)
    }

    /// One answer per row, overlaps above `nms` suppressed; a video fits as well as its best moment.
    pub(super) fn answers(&self, nms: f64) -> Result<Vec<VideoAnswer>> {
        let grid = Some(Grid { clips: self.starts.dim(1)? });
        let answer = |ranked: Vec<Proposal>| {
            let moments = suppress(&ranked, nms, MOMENTS_PER_VIDEO, grid);
            VideoAnswer { video_score: moments.first().map_or(0.0, |best| best.score), moments }
        };
        Ok(self.rank()?.into_iter().map(answer).collect())
    }
}

/// Linear layers with ReLU between them.
#[derive(Debug)]
pub(super) struct Mlp(Vec<Linear>);

impl Mlp {
    pub(super) fn new(layers: usize, hidden: usize, outputs: usize, vb: &VarBuilder) -> Result<Self> {
        let layer =
            |number: usize| linear(hidden, if number + 1 == layers { outputs } else { hidden }, vb.pp("l").pp(number));
        Ok(Self((0..layers).map(layer).collect::<candle_core::Result<_>>()?))
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, layer) in self.0.iter().enumerate() {
            x = layer.forward(&if number == 0 { x } else { x.relu()? })?;
        }
        Ok(x)
    }
}

/// The network.
#[derive(Debug)]
pub struct Cet {
    config: CetConfig,
    text: TokenEncoder,
    core: Core,
}

/// Everything after the sentence encoder.
#[derive(Debug)]
struct Core {
    clips: Linear,
    tokens: Linear,
    places: Tensor,
    kinds: Tensor,
    layers: Vec<EncoderLayer>,
    start: Mlp,
    end: Mlp,
}

impl Cet {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &CetConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let text = TokenEncoder::new(&config.text, given, vb.pp("text_encoder.bert"))?;
        Ok(Self { core: Core::new(config, given.visual, text.width(), &vb)?, text, config: config.clone() })
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Boundaries> {
        let queries = &batch.queries;
        let tokens = self.text.forward(self.text.reads(&queries.word_ids, &queries.words), &queries.mask, pass)?;
        let clips = self.core.clips.forward(&batch.videos.visual)?;
        self.core.boundaries(&self.core.encode(&clips, &tokens, &queries.mask, pass)?)
    }
}

impl Core {
    fn new(config: &CetConfig, visual: usize, tokens: usize, vb: &VarBuilder) -> Result<Self> {
        let CetConfig { hidden, heads, ffn, dropout, .. } = *config;
        let size = TransformerSize { width: hidden, heads, ffn, dropout };
        let table = |rows: usize, name: &str| {
            vb.pp(name).get_with_hints((rows, hidden), "weight", Init::Randn { mean: 0.0, stdev: 0.02 })
        };
        Ok(Self {
            clips: linear_no_bias(visual, hidden, vb.pp("w_v"))?,
            tokens: linear_no_bias(tokens, hidden, vb.pp("w_q"))?,
            places: table(config.clips, "pos")?,
            kinds: table(2, "seg_type")?,
            layers: (0..config.layers)
                .map(|number| EncoderLayer::new(size, vb.pp("encoder.layers").pp(number)))
                .collect::<candle_core::Result<_>>()?,
            start: Mlp::new(config.score_layers, hidden, 1, &vb.pp("mlp_s"))?,
            end: Mlp::new(config.score_layers, hidden, 1, &vb.pp("mlp_e"))?,
        })
    }

    /// # Shapes
    /// - clips `[batch, clips, hidden]`, projected; tokens `[batch, tokens, d_token]` with `mask [batch, tokens]`
    /// - returns `[batch, clips, hidden]`
    fn encode(&self, clips: &Tensor, tokens: &Tensor, mask: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (batch, count, _) = clips.dims3()?;
        let clips = clips.broadcast_add(&self.places)?.broadcast_add(&self.kinds.narrow(0, 0, 1)?)?;
        let tokens = self.tokens.forward(tokens)?.broadcast_add(&self.kinds.narrow(0, 1, 1)?)?;
        let seen = Tensor::cat(&[&Tensor::ones((batch, count), mask.dtype(), mask.device())?, mask], 1)?;
        let bias = see_only(&seen)?;
        let both = Tensor::cat(&[&clips, &tokens], 1)?;
        let encode = |x: Tensor, layer: &EncoderLayer| layer.forward(&x, None, Some(&bias), pass);
        Ok(self.layers.iter().try_fold(both, encode)?.narrow(1, 0, count)?.contiguous()?)
    }

    fn boundaries(&self, encoded: &Tensor) -> Result<Boundaries> {
        let score = |head: &Mlp| -> Result<Tensor> { Ok(head.forward(encoded)?.squeeze(D::Minus1)?) };
        Ok(Boundaries { starts: score(&self.start)?, ends: score(&self.end)? })
    }
}

impl Model for Cet {
    fn input(&self) -> Input {
        Input { normalise: Normalise::None, text: Text::Tokens, ..Input::pairs(self.config.clips) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        self.of_batch(batch, pass)?.loss(batch, CARD.name, self.config.labels, self.config.power)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        self.of_batch(batch, &Pass::answering())?.rank()
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }

    fn grid(&self) -> Option<Grid> {
        Some(Grid { clips: self.config.clips })
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        self.config.text_training.factor(parameter, pass)
    }

    fn corpus(&self) -> Option<&dyn Corpus> {
        Some(self)
    }
}

impl Corpus for Cet {
    /// The projected clips, `[clips, hidden]`: all of the network that does not need the query.
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>> {
        let clips = self.core.clips.forward(&videos.visual)?;
        (0..clips.dim(0)?).map(|video| Ok(Code(vec![clips.get(video)?]))).collect()
    }

    /// Runs the transformer once for every pair of a query and a video.
    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>> {
        let pass = Pass::answering();
        let tokens = self.text.forward(self.text.reads(&queries.word_ids, &queries.words), &queries.mask, &pass)?;
        let clips: Vec<&Tensor> = videos.iter().filter_map(|code| code.0.first()).collect();
        if clips.is_empty() {
            return Ok(vec![Vec::new(); queries.ids.len()]);
        }
        let clips = Tensor::stack(&clips, 0)?;
        let videos = clips.dim(0)?;
        let ask = |query: usize| -> Result<Vec<VideoAnswer>> {
            let tokens = tokens.narrow(0, query, 1)?;
            let (_, count, width) = tokens.dims3()?;
            let tokens = tokens.broadcast_as((videos, count, width))?.contiguous()?;
            let mask = queries.mask.narrow(0, query, 1)?.broadcast_as((videos, count))?.contiguous()?;
            self.core.boundaries(&self.core.encode(&clips, &tokens, &mask, &pass)?)?.answers(self.config.nms)
        };
        (0..queries.ids.len()).map(ask).collect()
    }
}

/// The sizes that a fixture of CET or BET states.
pub(super) fn sizes_of(fixture: &Fixture) -> Result<CetConfig> {
    Ok(CetConfig {
        clips: fixture.number("clips")?,
        hidden: fixture.number("d")?,
        heads: fixture.number("heads")?,
        ffn: fixture.number("ffn")?,
        layers: fixture.number("layers")?,
        score_layers: fixture.number("mlp_layers")?,
        power: fixture.real("k")?,
        dropout: 0.0,
        ..CetConfig::default()
    })
}

/// What the fixtures of CET and BET both hold about boundaries.
pub(super) fn trace_boundaries(trace: &mut Trace, fixture: &Fixture, found: &Boundaries, power: f64) -> Result<()> {
    let moments: Vec<_> = fixture.counts("start_index")?.into_iter().zip(fixture.counts("end_index")?).collect();
    let truth = Truth::new(&moments, Labels::Published, power, &found.starts)?;
    let [start_loss, end_loss] = truth.losses(found)?;
    let (starts, ends) = (sigmoid(&found.starts)?, sigmoid(&found.ends)?);
    let rows = starts.to_vec2::<f32>()?.into_iter().zip(ends.to_vec2::<f32>()?);
    let best = rows.filter_map(|(starts, ends)| best_clips(&starts, &ends).first().copied());
    let best: Vec<f32> = best.flat_map(|best| [best.first as f32, best.last as f32]).collect();
    trace.out("prob_start", &starts);
    trace.out("prob_end", &ends);
    trace.out("label_start", &truth.starts);
    trace.out("label_end", &truth.ends);
    trace.out("best_span", &Tensor::from_vec(best, (moments.len(), 2), starts.device())?);
    trace.loss("start", &start_loss);
    trace.loss("end", &end_loss);
    trace.loss("total", &((start_loss + end_loss)? / 2.0)?);
    Ok(())
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = sizes_of(fixture)?;
    let (visual, tokens, mask) =
        (fixture.input("video")?, fixture.input("query_tokens")?, fixture.input("query_mask")?);
    let core = Core::new(&config, visual.dim(2)?, tokens.dim(2)?, vb)?;
    let encoded = core.encode(&core.clips.forward(&visual)?, &tokens, &mask, &Pass::answering())?;

    let mut trace = Trace::new();
    trace.out("encoder_clips", &encoded);
    trace_boundaries(&mut trace, fixture, &core.boundaries(&encoded)?, config.power)?;
    Ok(trace)
}

#[cfg(test)]
pub(super) mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    pub(crate) fn small() -> CetConfig {
        CetConfig {
            clips: 8,
            hidden: 16,
            heads: 2,
            ffn: 24,
            layers: 1,
            power: 3.0,
            labels: Labels::Reaching,
            dropout: 0.0,
            text: BertSize {
                dim: 12,
                layers: 1,
                heads: 2,
                ffn: 16,
                positions: 12,
                dropout: 0.0,
                ..BertSize::default()
            },
            ..CetConfig::default()
        }
    }

    fn net() -> Cet {
        Cet::new(&small(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    #[test]
    fn every_pair_of_clips_is_proposed_once() {
        for proposals in net().propose(&TOY.batch(1)).unwrap() {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padded_tokens_change_nothing() {
        let (batch, net) = (TOY.batch(1), net());
        let starts = |batch: &Batch| net.of_batch(batch, &Pass::answering()).unwrap().starts;
        assert!(gap(&starts(&batch), &starts(&batch.with_longer_words(3))) < 1e-5);
    }

    #[test]
    fn labels_fall_from_the_boundaries_and_mirror_each_other() {
        let (starts, ends) = Labels::Published.of(&[(1, 3)], 5, 10.0);
        assert!((starts[1] - (2f32 / 3.0).powi(10)).abs() < 1e-6 && starts[3] == 0.0 && starts[0] == 0.0);
        assert!(starts.iter().eq(ends.iter().rev()));
        assert_eq!(Labels::Reaching.of(&[(1, 3)], 5, 10.0).0[1], 1.0);
    }

    #[test]
    fn a_moment_of_one_clip_has_no_published_label() {
        let (starts, ends) = Labels::Published.of(&[(2, 2)], 5, 10.0);
        assert!(starts.iter().chain(&ends).all(|label| *label == 0.0));
        assert_eq!(Labels::Reaching.of(&[(2, 2)], 5, 10.0).0[2], 1.0);
    }

    #[test]
    fn a_pool_is_answered_as_its_videos_are_one_by_one_in_any_order() {
        let (batch, net) = (TOY.batch(1), net());
        let codes = net.encode(&batch.videos).unwrap();
        let backwards: Vec<&Code> = codes.iter().rev().collect();
        let answers = net.search(&batch.queries, &backwards).unwrap();
        for (query, alone) in net.propose(&batch).unwrap().iter().enumerate() {
            let in_pool = &answers[query][TOY.pairs - 1 - query];
            assert!((in_pool.video_score - alone[0].score).abs() < 1e-5);
            assert_eq!(in_pool.moments[0].span, alone[0].span);
        }
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| Cet::new(&small(), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 100, 5e-3, 0.7); // soft labels leave a floor
    }
}
