//! Small batches and a short training loop for the models' own tests.

use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_tensor::{DType, Device, Params, Pass, Tensor, VarBuilder};

use crate::layers::detr::DetrSize;
use crate::layers::{TokenVectors, real_steps};
use crate::{
    Batch, BatchAnswers, ClipLabels, Given, Model, Proposal, QueryBatch, RatedClip, Result, Targets, VideoAnswer,
    VideoBatch,
};

/// Sizes of a toy batch: small enough for a test, different enough from each other that a mixed-up axis shows.
pub(crate) struct Toy {
    /// Pairs of video and query.
    pub pairs: usize,
    /// Clips of every video.
    pub clips: usize,
    /// Width of a clip.
    pub visual: usize,
    /// Words of the longest query; the others have fewer.
    pub words: usize,
    /// Width of a word vector.
    pub width: usize,
    /// Words in the vocabulary.
    pub vocabulary: usize,
}

pub(crate) const TOY: Toy = Toy { pairs: 4, clips: 8, visual: 10, words: 5, width: 6, vocabulary: 12 };

impl Toy {
    pub(crate) fn given(&self) -> Given {
        Given {
            visual: self.visual,
            subtitle: 0,
            audio: 0,
            words: self.width,
            vocabulary: self.vocabulary,
            tokens: TokenVectors::Own,
            verbs: None,
        }
    }

    /// Random videos and queries; the clips of the described span are shifted, so that there is something to find.
    pub(crate) fn batch(&self, seed: u64) -> Batch {
        let mut rng = Rng::new(seed);
        let spans: Vec<(usize, usize)> = (0..self.pairs)
            .map(|pair| {
                let start = pair % (self.clips / 2);
                (start, start + 1 + pair % 3 + self.clips / 4)
            })
            .collect();
        let mut visual = Vec::new();
        for (start, end) in &spans {
            for clip in 0..self.clips {
                let inside = if (*start..*end).contains(&clip) { 1.0 } else { 0.0 };
                visual.extend((0..self.visual).map(|_| (inside + 0.5 * rng.normal()) as f32));
            }
        }
        let lengths: Vec<usize> = (0..self.pairs).map(|pair| self.words - pair % 2).collect();
        let mask: Vec<f32> =
            lengths.iter().flat_map(|n| (0..self.words).map(move |word| f32::from(u8::from(word < *n)))).collect();
        let ids: Vec<u32> =
            mask.iter().map(|real| if *real > 0.0 { 1 + rng.below(self.vocabulary - 1) as u32 } else { 0 }).collect();
        let words: Vec<f32> = mask
            .iter()
            .flat_map(|real| (0..self.width).map(|_| real * rng.normal() as f32).collect::<Vec<_>>())
            .collect();
        let device = Device::Cpu;
        let span = |(start, end): &(usize, usize)| {
            NormSpan::new(*start as f64 / self.clips as f64, *end as f64 / self.clips as f64).unwrap()
        };
        Batch {
            videos: VideoBatch {
                ids: (0..self.pairs).map(|n| VideoId::from(format!("v{n}").as_str())).collect(),
                visual: Tensor::from_vec(visual, (self.pairs, self.clips, self.visual), &device).unwrap(),
                subtitle: None,
                audio: None,
                lengths: vec![self.clips; self.pairs],
                mask: Tensor::ones((self.pairs, self.clips), DType::F32, &device).unwrap(),
                durations: vec![self.clips as f64 * 2.0; self.pairs],
            },
            queries: QueryBatch {
                ids: (0..self.pairs).map(|n| QueryId::from(format!("q{n}").as_str())).collect(),
                video: (0..self.pairs).collect(),
                word_ids: Tensor::from_vec(ids, (self.pairs, self.words), &device).unwrap(),
                words: Tensor::from_vec(words, (self.pairs, self.words, self.width), &device).unwrap(),
                lengths,
                mask: Tensor::from_vec(mask, (self.pairs, self.words), &device).unwrap(),
                parses: None,
                phrases: None,
            },
            targets: Some(Targets {
                spans: spans.iter().map(span).collect(),
                relevance: None,
                joint: None,
                positives: None,
            }),
            other_videos: None,
            similarity: None,
            negatives: None,
        }
    }
}

/// The place of the video that fits best; of equals the first.
pub(crate) fn best_video(answers: &[VideoAnswer]) -> usize {
    first_best(answers.iter().map(|answer| answer.video_score))
}

/// The place of the video whose best moment fits best; of equals the first.
pub(crate) fn best_moment(answers: &[VideoAnswer]) -> usize {
    first_best(answers.iter().map(|answer| answer.moments[0].score))
}

fn first_best(scores: impl Iterator<Item = f32>) -> usize {
    scores.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap().0
}

/// Trains a fresh model on one batch and returns it with its first and last loss.
pub(crate) fn overfit(
    build: impl Fn(VarBuilder) -> Result<Box<dyn Model>>,
    batch: &Batch,
    steps: usize,
    rate: f64,
) -> (Box<dyn Model>, f32, f32) {
    let params = Params::seeded(1, &Device::Cpu);
    let model = build(params.builder()).unwrap();
    let vars = params.vars().into_iter().map(|(_, var)| var).collect();
    let mut optimiser =
        AdamW::new(vars, ParamsAdamW { lr: rate, weight_decay: 0.0, ..ParamsAdamW::default() }).unwrap();
    let mut losses = Vec::new();
    for step in 0..steps {
        let pass = Pass::training(0, 1, Rng::new(step as u64));
        let loss = model.loss(batch, &pass).unwrap().total;
        losses.push(loss.to_scalar::<f32>().unwrap());
        optimiser.backward_step(&loss).unwrap();
    }
    (model, losses[0], losses[losses.len() - 1])
}

/// Trains a fresh model on one batch: the loss must fall below `share` of what it was, and the best proposal of every
/// query overlap its span by 0.7 or more. Returns the model for whatever else must hold.
pub(crate) fn assert_learnt_by_heart<M: Model + 'static>(
    build: impl Fn(VarBuilder) -> Result<M>,
    batch: &Batch,
    steps: usize,
    rate: f64,
    share: f32,
) -> Box<dyn Model> {
    let (model, first, last) = overfit(|vb| Ok(Box::new(build(vb)?)), batch, steps, rate);
    assert!(last < share * first, "{first} to {last}");
    let overlaps = best_overlaps(model.as_ref(), batch);
    assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    model
}

/// The overlap of each query's best proposal with its span.
pub(crate) fn best_overlaps(model: &dyn Model, batch: &Batch) -> Vec<f64> {
    let ranked = model.propose(batch).unwrap();
    let spans = &batch.targets.as_ref().unwrap().spans;
    ranked.iter().zip(spans).map(|(proposals, span)| proposals[0].span.iou_hull(*span)).collect()
}

/// Largest difference between two tensors of one shape.
pub(crate) fn gap(a: &Tensor, b: &Tensor) -> f32 {
    (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

impl Batch {
    /// The same batch with `more` words of padding.
    pub(crate) fn with_longer_words(&self, more: usize) -> Self {
        let mut longer = self.clone();
        let queries = &mut longer.queries;
        queries.words = queries.words.pad_with_zeros(1, 0, more).unwrap();
        queries.word_ids = queries.word_ids.pad_with_zeros(1, 0, more).unwrap();
        queries.mask = queries.mask.pad_with_zeros(1, 0, more).unwrap();
        longer
    }

    /// The same batch with `more` clips of padding.
    pub(crate) fn with_longer_videos(&self, more: usize) -> Self {
        let mut longer = self.clone();
        let videos = &mut longer.videos;
        videos.visual = videos.visual.pad_with_zeros(1, 0, more).unwrap();
        videos.mask = videos.mask.pad_with_zeros(1, 0, more).unwrap();
        videos.subtitle = videos.subtitle.as_ref().map(|subtitle| subtitle.pad_with_zeros(1, 0, more).unwrap());
        longer
    }
}

/// The same batch with random subtitle features, `width` wide.
pub(crate) fn with_subtitles(batch: &Batch, width: usize) -> Batch {
    let mut rng = Rng::new(7);
    let (videos, clips, _) = batch.videos.visual.dims3().unwrap();
    let values: Vec<f32> = (0..videos * clips * width).map(|_| rng.normal() as f32).collect();
    let subtitle = Tensor::from_vec(values, (videos, clips, width), &Device::Cpu).unwrap();
    let mut batch = batch.clone();
    batch.videos.subtitle = Some(subtitle);
    batch
}

/// As many queries as before, all asked of the first video, whose moments lie one after another.
pub(crate) fn of_one_video(batch: &Batch) -> Batch {
    let mut one = batch.clone();
    let count = batch.len();
    let videos = &mut one.videos;
    videos.ids.truncate(1);
    videos.lengths.truncate(1);
    videos.durations.truncate(1);
    videos.visual = videos.visual.narrow(0, 0, 1).unwrap();
    videos.mask = videos.mask.narrow(0, 0, 1).unwrap();
    one.queries.video = vec![0; count];
    let span = |place: usize| NormSpan::new(place as f64 / count as f64, (place + 1) as f64 / count as f64).unwrap();
    one.targets =
        Some(Targets { spans: (0..count).map(span).collect(), relevance: None, joint: None, positives: None });
    one
}

/// Sizes of a toy network for moments and highlights.
pub(crate) const JOINT: DetrSize =
    DetrSize { hidden: 16, heads: 2, ffn: 24, input_layers: 2, dropout: 0.0, input_dropout: 0.0 };

/// The toy batch with every kind of label: one query with two windows, one without ratings, a video shorter than the others.
pub(crate) fn joint_batch() -> Batch {
    let mut batch = TOY.batch(1);
    batch.videos.lengths[2] = TOY.clips - 1;
    let keep = real_steps(&batch.videos.lengths, TOY.clips, &Device::Cpu).unwrap();
    batch.videos.visual = batch.videos.visual.broadcast_mul(&keep.unsqueeze(2).unwrap()).unwrap();
    batch.videos.mask = keep;
    let targets = batch.targets.as_mut().unwrap();
    let mut joint = targets.joint(&batch.videos.lengths);
    joint.windows[0].push(NormSpan::new(0.875, 1.0).unwrap());
    for (number, labels) in joint.clips.iter_mut().enumerate().skip(1) {
        let ClipLabels::Window(stretch) = labels else { unreachable!() };
        let rated = |clip: usize| RatedClip { clip, total: (3 * number + 2 * (clip % 3)) as f32 % 12.0, raters: 3 };
        *labels = ClipLabels::Rated((stretch.first..=stretch.last).map(rated).collect());
    }
    targets.joint = Some(joint);
    batch
}

/// Every query has `count` spans, best first, inside its video, and one finite score for every real clip.
pub(crate) fn assert_well_formed(model: &dyn Model, count: usize) {
    let batch = joint_batch();
    let answers = model.answer(&batch).unwrap();
    for proposals in &answers.proposals {
        assert_eq!(proposals.len(), count);
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        assert!(proposals.iter().all(|proposal| proposal.span.start() >= 0.0 && proposal.span.end() <= 1.0));
    }
    let saliency = answers.saliency.unwrap();
    assert_eq!(saliency.iter().map(Vec::len).collect::<Vec<_>>(), batch.videos.lengths);
    assert!(saliency.iter().flatten().all(|score| score.is_finite()));
    let mut wordless = batch;
    wordless.queries.lengths[1] = 0;
    let error = model.answer(&wordless).unwrap_err().to_string();
    assert!(error.contains("`q1` has no word"), "{error}");
}

/// How far clip scores and the best spans move when clips and words of padding are added.
pub(crate) fn moved_by_padding(model: &dyn Model) -> f32 {
    let short = joint_batch();
    let longer = short.with_longer_videos(3).with_longer_words(2);
    let [few, more] = [&short, &longer].map(|batch| model.answer(batch).unwrap());
    let scores = |answers: &BatchAnswers| answers.saliency.clone().unwrap().concat();
    let best = |answers: &BatchAnswers| -> Vec<f32> {
        let first = |proposals: &Vec<Proposal>| [proposals[0].score, proposals[0].span.start() as f32];
        answers.proposals.iter().flat_map(first).collect()
    };
    let gap = |a: Vec<f32>, b: Vec<f32>| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    gap(scores(&few), scores(&more)).max(gap(best(&few), best(&more)))
}

pub(crate) fn assert_padding_changes_nothing(model: &dyn Model) {
    let moved = moved_by_padding(model);
    assert!(moved < 1e-4, "{moved}");
}

/// Trains a fresh model on the joint toy batch: the best span of every query must meet one of its windows, and the clips of its
/// first window score higher on average than the others.
pub(crate) fn assert_joint_learnt(build: impl Fn(VarBuilder) -> Result<Box<dyn Model>>, steps: usize, rate: f64) {
    let batch = joint_batch();
    let (model, first, last) = overfit(build, &batch, steps, rate);
    assert!(last < 0.6 * first, "{first} to {last}");
    let answers = model.answer(&batch).unwrap();
    let joint = batch.targets.as_ref().unwrap().joint.clone().unwrap();
    let met = |(proposals, windows): (&Vec<Proposal>, &Vec<NormSpan>)| {
        windows.iter().map(|window| proposals[0].span.iou_hull(*window)).fold(0.0, f64::max)
    };
    let overlaps: Vec<f64> = answers.proposals.iter().zip(&joint.windows).map(met).collect();
    assert!(overlaps.iter().all(|overlap| *overlap >= 0.7), "{overlaps:?}");
    for (scores, labels) in answers.saliency.unwrap().iter().zip(&joint.clips) {
        let relevant = labels.relevant(scores.len());
        let mean = |wanted: f32| {
            let of: Vec<f32> = scores.iter().zip(&relevant).filter(|(_, r)| **r == wanted).map(|(s, _)| *s).collect();
            of.iter().sum::<f32>() / of.len() as f32
        };
        assert!(mean(1.0) > mean(0.0), "{scores:?} {relevant:?}");
    }
}
