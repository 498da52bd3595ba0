//! CTRL: scores sliding windows against the sentence and moves their ends to where the moment seems to lie.
//! Gao et al., "TALL: Temporal Activity Localization via Language Query", ICCV 2017.
//!
//! Follows the published code in dividing the alignment loss by the square of the batch. Windows are counted in feature rows
//! (16 frames each as published), offsets too. The sentence is the mean of its word vectors, where the code has
//! Skip-thoughts vectors; of each query's windows that overlap its moment enough one is drawn per step.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::{ClipRange, NormSpan};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::functional::{l2_normalise, masked_mean, softplus};
use cuemark_tensor::{Device, Pass};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::Linear;
use crate::layers::sliding_windows;
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, QueryBatch, Result, Supervision, Task,
    VideoBatch,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "ctrl",
    title: "CTRL",
    paper: "Gao et al., TALL: Temporal Activity Localization via Language Query, ICCV 2017",
    family: Family::TwoStage,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "scores sliding windows with the sentence and regresses both ends of the moment",
    full_sizes: &[
        FullSize { dataset: "tacos", settings: "", visual: 4096, words: 4800, millions: None },
        FullSize {
            dataset: "activitynet-captions",
            settings: "windows = { train = [16, 64, 128], answer = [16, 64, 128], context = 64 }",
            visual: 500,
            words: 300,
            millions: None,
        },
        FullSize {
            dataset: "charades-sta",
            settings: "windows = { train = [8, 16], answer = [8, 16] }",
            visual: 4096,
            words: 300,
            millions: None,
        },
    ],
    build: |settings, given, vb| Ok(Box::new(Ctrl::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<CtrlConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CtrlConfig {
    /// Which windows are looked at. Default: those of TACoS in rows of 16 frames
    pub windows: WindowRules,
    /// Width of the joint space. Default: 1024
    pub hidden: usize,
    /// Width of the layer before the scores. Default: 1000
    pub middle: usize,
    /// Weight of the offsets. Default: 0.01
    pub offset_weight: f64,
    /// Overlap above which the worse of two answers is dropped. Default: 0.45
    pub nms: f64,
}

impl Default for CtrlConfig {
    fn default() -> Self {
        Self { windows: WindowRules::default(), hidden: 1024, middle: 1000, offset_weight: 0.01, nms: 0.45 }
    }
}

/// Which windows are looked at, in feature rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowRules {
    /// The most rows of a video; longer ones are averaged to them. Default: 2048
    pub rows: usize,
    /// Lengths of windows while training. Default: 4, 8, 16, 32
    pub train: Vec<usize>,
    /// Lengths of windows when answering. Default: 8, 16
    pub answer: Vec<usize>,
    /// Length of the neighbour on either side. Default: 8
    pub context: usize,
    /// A window moves on by its length divided by this. Default: 5
    pub steps: usize,
    /// The least overlap of a training window with its moment, exclusive. Default: 0.5
    pub min_iou: f64,
    /// The share of a training window that may lie outside the moment, exclusive. Default: 0.15
    pub max_outside: f64,
}

impl Default for WindowRules {
    fn default() -> Self {
        Self {
            rows: 2048,
            train: vec![4, 8, 16, 32],
            answer: vec![8, 16],
            context: 8,
            steps: 5,
            min_iou: 0.5,
            max_outside: 0.15,
        }
    }
}

/// Windows chosen for some queries of a batch.
pub(super) struct Chosen {
    /// Positions of the queries that have one.
    pub queries: Vec<usize>,
    /// `[chosen, 3, width]`: left neighbour, window, right neighbour.
    pub visual: Tensor,
    /// `[chosen, 2]`: start and end of the moment minus those of the window, in rows.
    pub offsets: Tensor,
}

impl WindowRules {
    /// What a model with these windows reads.
    pub(super) fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.rows },
            ..Input::pairs(self.rows)
        }
    }

    /// For every query a training window that fits its moment, drawn evenly; the first when not training. Queries without one
    /// are left out.
    pub(super) fn choose(&self, batch: &Batch, spans: &[NormSpan], pass: &Pass) -> Result<Chosen> {
        let (mut queries, mut visual, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        for (query, span) in spans.iter().enumerate() {
            let video = batch.queries.video[query];
            let rows = batch.videos.lengths[video];
            let (start, end) = (span.start() * rows as f64, span.end() * rows as f64);
            let fits = |window: &ClipRange| self.fits(*window, start, end);
            let windows: Vec<ClipRange> =
                sliding_windows(rows, &self.train, self.steps).into_iter().filter(fits).collect();
            let drawn = pass.draw(|rng| rng.below(windows.len())).unwrap_or(0);
            let Some(window) = windows.get(drawn) else { continue };
            let features = batch.videos.visual.get(video)?;
            let mean = |window: ClipRange| features.narrow(0, window.first(), window.len())?.mean(0);
            let three = self.with_neighbours(*window, rows).map(mean);
            visual.push(Tensor::stack(&three.into_iter().collect::<candle_core::Result<Vec<_>>>()?, 0)?);
            offsets.extend([(start - window.first() as f64) as f32, (end - window.end() as f64) as f32]);
            queries.push(query);
        }
        let device = batch.videos.visual.device();
        let visual = match visual.is_empty() {
            true => Tensor::zeros((0, 3, batch.videos.visual.dim(2)?), candle_core::DType::F32, device)?,
            false => Tensor::stack(&visual, 0)?,
        };
        Ok(Chosen { offsets: Tensor::from_vec(offsets, (queries.len(), 2), device)?, queries, visual })
    }

    fn fits(&self, window: ClipRange, start: f64, end: f64) -> bool {
        let (first, last) = (window.first() as f64, window.end() as f64);
        let inter = end.min(last) - start.max(first);
        let hull = end.max(last) - start.min(first);
        inter / hull > self.min_iou && (last - first - inter) / (last - first) < self.max_outside
    }

    /// Left neighbour, window, right neighbour; a neighbour that is not there is the window itself.
    fn with_neighbours(&self, window: ClipRange, rows: usize) -> [ClipRange; 3] {
        let or_window = |range: Option<ClipRange>| range.filter(|range| !range.is_empty()).unwrap_or(window);
        let left = ClipRange::new(window.first().saturating_sub(self.context), window.first());
        let right = ClipRange::new(window.end(), (window.end() + self.context).min(rows));
        [or_window(left), window, or_window(right)]
    }

    /// Every window of one video and its features with those of its neighbours, `[windows, 3, width]`.
    pub(super) fn all(&self, videos: &VideoBatch, video: usize) -> Result<(Vec<ClipRange>, Tensor)> {
        let rows = videos.lengths[video];
        let windows = sliding_windows(rows, &self.answer, self.steps);
        let width = videos.visual.dim(2)?;
        let features = videos.visual.get(video)?.flatten_all()?.to_vec1::<f32>()?;
        // Sums up to each row: a window's mean is a difference of two, however long it is.
        let mut sums = vec![0f64; (rows + 1) * width];
        for place in 0..rows * width {
            sums[place + width] = sums[place] + f64::from(features[place]);
        }
        let mut values = Vec::with_capacity(windows.len() * 3 * width);
        for range in windows.iter().flat_map(|window| self.with_neighbours(*window, rows)) {
            let (below, above) = (&sums[range.first() * width..], &sums[range.end() * width..]);
            let count = range.len().max(1) as f64;
            values.extend(below.iter().zip(above).take(width).map(|(below, above)| ((above - below) / count) as f32));
        }
        let visual = Tensor::from_vec(values, (windows.len(), 3, width), &Device::Cpu)?;
        Ok((windows, visual.to_device(videos.visual.device())?))
    }
}

/// The mean of each query's word vectors, `[queries, width]`.
pub(super) fn sentences(queries: &QueryBatch) -> Result<Tensor> {
    Ok(masked_mean(&queries.words, &queries.mask.unsqueeze(2)?, 1)?)
}

/// Scores and offsets of every sentence with every window.
pub(super) struct Aligned {
    /// `[sentences, windows, ..]`, what the scores are made from.
    pub fused: Tensor,
    /// `[sentences, windows]`.
    pub scores: Tensor,
    /// `[sentences, windows]`, in rows.
    pub starts: Tensor,
    /// As `starts`.
    pub ends: Tensor,
}

impl Aligned {
    /// Two layers over `fused [sentences, windows, ..]`.
    pub(super) fn new(fused: Tensor, first: &Linear, second: &Linear) -> Result<Self> {
        let out = second.forward(&first.forward(&fused)?.relu()?)?;
        let part = |number: usize| out.narrow(D::Minus1, number, 1)?.squeeze(D::Minus1);
        Ok(Self { scores: part(0)?, starts: part(1)?, ends: part(2)?, fused })
    }

    /// Alignment of the diagonal against everything else, and the offsets of the diagonal; `alpha` weighs the rest.
    pub(super) fn losses(&self, offsets: &Tensor, alpha: f64) -> Result<(Tensor, Tensor)> {
        let count = self.scores.dim(0)?;
        let diagonal = Tensor::eye(count, self.scores.dtype(), self.scores.device())?;
        // Minus on the diagonal, plus elsewhere; the diagonal weighs 1 + alpha.
        let signed = (&self.scores * diagonal.affine(-2.0, 1.0)?)?;
        let align = (softplus(&signed)? * diagonal.affine(1.0, alpha)?)?.mean_all()?;
        let own = |all: &Tensor| (all * &diagonal)?.sum(1);
        let moved = Tensor::stack(&[own(&self.starts)?, own(&self.ends)?], 1)?;
        Ok((align, (moved - offsets)?.abs()?.mean_all()?))
    }

    /// The only sentence's windows, moved to where the offsets say, best first; of equal scores the later window.
    pub(super) fn rank(&self, windows: &[ClipRange], rows: usize) -> Result<Vec<Proposal>> {
        let row = |all: &Tensor| all.get(0)?.to_vec1::<f32>();
        let (scores, starts, ends) = (row(&self.scores)?, row(&self.starts)?, row(&self.ends)?);
        let moved = |place: usize| {
            let start = windows[place].first() as f64 + f64::from(starts[place]);
            let end = windows[place].end() as f64 + f64::from(ends[place]);
            let span = NormSpan::new(start / rows as f64, end / rows as f64)?.clipped();
            Some(Proposal { span, score: scores[place] })
        };
        let mut ranked: Vec<Proposal> = (0..windows.len()).rev().filter_map(moved).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(ranked)
    }
}

/// A linear layer that starts from a normal distribution of the given deviation, biases 0.
pub(super) fn normal_linear(inputs: usize, outputs: usize, deviation: f64, vb: &VarBuilder) -> Result<Linear> {
    let weight = vb.get_with_hints((outputs, inputs), "weight", Init::Randn { mean: 0.0, stdev: deviation })?;
    Ok(Linear::new(weight, Some(vb.get_with_hints(outputs, "bias", Init::Const(0.0))?)))
}

/// The loss of a step, from what the chosen windows gave.
pub(super) fn step_loss(aligned: &Aligned, offsets: &Tensor, offset_weight: f64) -> Result<Loss> {
    let count = aligned.scores.dim(0)?.max(1) as f64;
    let (align, offset) = aligned.losses(offsets, count.recip())?;
    let total = (&align + (&offset * offset_weight)?)?;
    Ok(Loss { total, parts: vec![("align", align), ("offset", offset)] })
}

/// The loss of a step in which no query has a window that fits.
pub(super) fn no_loss(device: &Device) -> Result<Loss> {
    Ok(Tensor::zeros((), candle_core::DType::F32, device)?.into())
}

/// The network.
#[derive(Debug)]
pub struct Ctrl {
    config: CtrlConfig,
    window: Linear,
    sentence: Linear,
    first: Linear,
    second: Linear,
}

impl Ctrl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &CtrlConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let CtrlConfig { hidden, middle, .. } = *config;
        let layers = vb.pp("vs_multilayer_lt");
        Ok(Self {
            // Any deviation would do: lengths are normalised away.
            window: normal_linear(3 * given.visual, hidden, 1.0, &vb.pp("v2s_lt"))?,
            sentence: normal_linear(given.words, hidden, 1.0, &vb.pp("s2s_lt"))?,
            first: normal_linear(4 * hidden, middle, 0.01, &layers.pp("layer1"))?,
            second: normal_linear(middle, 3, 0.01, &layers.pp("layer2"))?,
            config: config.clone(),
        })
    }

    /// Unit vectors of windows `[windows, 3 width]` and sentences `[sentences, width]`, `[.., hidden]` each.
    fn embed(&self, visual: &Tensor, sentences: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((l2_normalise(&self.window.forward(visual)?)?, l2_normalise(&self.sentence.forward(sentences)?)?))
    }

    /// Every sentence with every window.
    fn align(&self, windows: &Tensor, sentences: &Tensor) -> Result<Aligned> {
        let (windows, sentences) = (windows.unsqueeze(0)?, sentences.unsqueeze(1)?);
        let product = windows.broadcast_mul(&sentences)?;
        let alone = |part: &Tensor| part.broadcast_as(product.shape());
        let sum = windows.broadcast_add(&sentences)?;
        let fused = Tensor::cat(&[&product, &sum, &alone(&windows)?, &alone(&sentences)?], 2)?;
        Aligned::new(fused, &self.first, &self.second)
    }
}

impl Model for Ctrl {
    fn input(&self) -> Input {
        self.config.windows.input()
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let chosen = self.config.windows.choose(batch, &batch.targets(CARD.name)?.spans, pass)?;
        if chosen.queries.is_empty() {
            return no_loss(batch.videos.visual.device());
        }
        let sentences = sentences(&batch.queries.select(&chosen.queries)?)?;
        let (windows, sentences) = self.embed(&chosen.visual.flatten_from(1)?, &sentences)?;
        step_loss(&self.align(&windows, &sentences)?, &chosen.offsets, self.config.offset_weight)
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let all = sentences(&batch.queries)?;
        let of = |(query, video): (usize, &usize)| {
            let (windows, visual) = self.config.windows.all(&batch.videos, *video)?;
            let (visual, sentence) = self.embed(&visual.flatten_from(1)?, &all.narrow(0, query, 1)?)?;
            self.align(&visual, &sentence)?.rank(&windows, batch.videos.lengths[*video])
        };
        batch.queries.video.iter().enumerate().map(of).collect()
    }

    fn nms(&self) -> Option<f64> {
        Some(self.config.nms)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = CtrlConfig {
        hidden: fixture.number("semantic")?,
        middle: fixture.number("middle")?,
        offset_weight: fixture.real("reg_weight")?,
        ..CtrlConfig::default()
    };
    let (visual, sentences) = (fixture.input("visual")?, fixture.input("sentence")?);
    let given = Given::widths(visual.dim(1)? / 3, sentences.dim(1)?, 0);
    let net = Ctrl::new(&config, &given, vb.clone())?;
    let (windows, sentences) = net.embed(&visual, &sentences)?;
    let aligned = net.align(&windows, &sentences)?;
    let (align, offset) = aligned.losses(&fixture.input("offset_label")?, fixture.real("alpha")?)?;

    let mut trace = Trace::new();
    trace.out("visual_embed", &windows);
    trace.out("sentence_embed", &sentences);
    trace.out("comb", &aligned.fused);
    trace.out("score", &aligned.scores);
    trace.out("offset_start", &aligned.starts);
    trace.out("offset_end", &aligned.ends);
    trace.loss("total", &(&align + (&offset * config.offset_weight)?)?);
    trace.loss("align", &align);
    trace.loss("reg", &offset);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Params;

    use super::*;
    use crate::testing::{TOY, Toy, best_overlaps, gap, of_one_video, overfit};

    fn config() -> CtrlConfig {
        let windows = WindowRules { train: vec![2, 3], answer: vec![2, 3], context: 2, ..WindowRules::default() };
        CtrlConfig { windows, hidden: 16, middle: 20, ..CtrlConfig::default() }
    }

    fn build(vb: VarBuilder) -> Result<Box<dyn Model>> {
        Ok(Box::new(Ctrl::new(&config(), &TOY.given(), vb)?))
    }

    #[test]
    fn every_window_is_proposed_once() {
        let ranked = build(Params::seeded(1, &Device::Cpu).builder()).unwrap().propose(&TOY.batch(1)).unwrap();
        for proposals in ranked {
            assert_eq!(proposals.len(), 7 + 6);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = TOY.batch(1);
        let longer = batch.with_longer_words(2).with_longer_videos(3);
        let model = build(Params::seeded(1, &Device::Cpu).builder()).unwrap();
        let loss = |batch: &Batch| model.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-6);
        assert_eq!(model.propose(&batch).unwrap(), model.propose(&longer).unwrap());
    }

    #[test]
    fn training_windows_overlap_their_moments_and_hardly_leave_them() {
        let rules = WindowRules::default();
        let fits = |first, end| rules.fits(ClipRange::new(first, end).unwrap(), 10.0, 20.0);
        assert!(fits(10, 20) && fits(10, 16) && fits(9, 19));
        assert!(!fits(10, 15)); // half of it, and no more
        assert!(!fits(8, 19)); // two of eleven rows outside
        assert!(!fits(30, 40));
    }

    #[test]
    fn neighbours_that_are_not_there_are_the_window_itself() {
        let rules = WindowRules { context: 3, ..WindowRules::default() };
        let bounds = |window: ClipRange| (window.first(), window.end());
        let window = ClipRange::new(2, 6).unwrap();
        assert_eq!(rules.with_neighbours(window, 6).map(bounds), [(0, 2), (2, 6), (2, 6)]);
    }

    #[test]
    fn means_when_answering_are_those_of_training() {
        let batch = TOY.batch(1);
        let rules = config().windows;
        let (windows, all) = rules.all(&batch.videos, 1).unwrap();
        let features = batch.videos.visual.get(1).unwrap();
        for (place, window) in windows.iter().enumerate() {
            for (side, range) in rules.with_neighbours(*window, TOY.clips).into_iter().enumerate() {
                let mean = features.narrow(0, range.first(), range.len()).unwrap().mean(0).unwrap();
                assert!(gap(&all.get(place).unwrap().get(side).unwrap(), &mean) < 1e-5);
            }
        }
    }

    /// Windows are only ever compared with those of other queries, so the moments of one video must be each other's.
    #[test]
    fn the_moments_of_one_video_can_be_learnt_by_heart() {
        let batch = of_one_video(&Toy { clips: 12, ..TOY }.batch(1));
        let (model, first, last) = overfit(build, &batch, 600, 5e-3);
        assert!(last < 0.5 * first, "{first} to {last}");
        let overlaps = best_overlaps(model.as_ref(), &batch);
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    }
}
