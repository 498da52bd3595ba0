//! Small batches and a short training loop for the models' own tests.

use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_tensor::{DType, Device, Params, Pass, Tensor, VarBuilder};

use crate::{Batch, Given, Model, QueryBatch, Result, Targets, VideoBatch};

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
        Given { visual: self.visual, subtitle: 0, words: self.width, vocabulary: self.vocabulary, verbs: None }
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
            targets: Some(Targets { spans: spans.iter().map(span).collect(), relevance: None, positives: None }),
            other_videos: None,
            similarity: None,
            negatives: None,
        }
    }
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
    one.targets = Some(Targets { spans: (0..count).map(span).collect(), relevance: None, positives: None });
    one
}
