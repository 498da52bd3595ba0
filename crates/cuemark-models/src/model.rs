//! What a model must be able to do, and what else it may.

use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::{Pass, Tensor};

use crate::layers::TokenVectors;
use crate::{Apart, Batch, QueryBatch, Result, Towers, VideoBatch};

/// A method that finds the moment a sentence describes.
pub trait Model: Send + Sync {
    /// How clips and words must be brought to it.
    fn input(&self) -> Input;

    /// What training makes smaller.
    ///
    /// # Errors
    /// When the batch lacks something the model reads, and those of the tensor operations.
    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss>;

    /// For every query of the batch, spans of its own video, best first, overlaps not yet suppressed.
    ///
    /// # Errors
    /// As [`Model::loss`].
    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>>;

    /// As [`Model::propose`], with one score per clip from models that score clips too.
    ///
    /// # Errors
    /// As [`Model::loss`].
    fn answer(&self, batch: &Batch) -> Result<BatchAnswers> {
        Ok(BatchAnswers { proposals: self.propose(batch)?, saliency: None })
    }

    /// The overlap above which the worse of two proposals is dropped; `None` keeps them all.
    fn nms(&self) -> Option<f64> {
        None
    }

    /// The grid whose cells all proposals are, when they are: suppression then counts clips, where fractions would round.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// The factor on the learning rate of one parameter in this pass; 0 keeps it as it is.
    fn rate(&self, _parameter: &str, _pass: &Pass) -> f64 {
        1.0
    }

    /// How batches of a training stage (from 0) are given sampled negatives; `None` for those that need none.
    fn hard_negatives(&self, _stage: usize) -> Option<HardNegatives> {
        None
    }

    /// How many videos that a first stage ranks high and that are wrong a training query is given (`data.first_stage`); 0 for
    /// models that no first stage stands before.
    fn first_stage_negatives(&self) -> usize {
        0
    }

    /// The model as one that reads the pairs of a batch apart from each other, if it does; training then spreads them over threads.
    fn apart(&self) -> Option<&dyn Apart> {
        None
    }

    /// The model as two networks of which one reads videos and one sentences, if it is; training then runs them side by side.
    fn towers(&self) -> Option<&dyn Towers> {
        None
    }

    /// The model as one that answers over many videos, if it can.
    fn corpus(&self) -> Option<&dyn Corpus> {
        None
    }

    /// The model as one whose moments can be put into an index, if they can.
    fn bi_encoder(&self) -> Option<&dyn BiEncoder> {
        None
    }
}

/// A model that answers over many videos: each is encoded once, then every query is asked of all of them.
pub trait Corpus {
    /// What is kept of each video.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn encode(&self, videos: &VideoBatch) -> Result<Vec<Code>>;

    /// How well each video as a whole fits each query, `[query][video]`, when that is known without looking for moments;
    /// a trainer draws its hard negatives by it.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn score_videos(&self, _queries: &QueryBatch, _videos: &[&Code]) -> Result<Option<Vec<Vec<f32>>>> {
        Ok(None)
    }

    /// For every query and every video how well the video fits and where in it.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn search(&self, queries: &QueryBatch, videos: &[&Code]) -> Result<Vec<Vec<VideoAnswer>>>;

    /// As [`Corpus::search`], after another model gave the videos the scores `first_stage[query][video]`, which count in
    /// place of the model's own where it can take them.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn search_after(
        &self,
        queries: &QueryBatch,
        videos: &[&Code],
        _first_stage: &[Vec<f32>],
    ) -> Result<Vec<Vec<VideoAnswer>>> {
        self.search(queries, videos)
    }
}

/// A model that maps queries and moments into one space, independently of each other.
pub trait BiEncoder {
    /// Unit vectors of every candidate moment of every video.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn embed_moments(&self, videos: &VideoBatch) -> Result<Vec<Moments>>;

    /// Unit vectors of the queries, `[queries, width]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    fn embed_queries(&self, queries: &QueryBatch) -> Result<Tensor>;
}

/// How negatives are sampled from the whole training split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HardNegatives {
    /// How many, and how likely by their relevance.
    pub sampling: crate::losses::Sampling,
    /// Videos and queries more alike than this are no reliable negatives.
    pub threshold: f64,
}

/// What a corpus model keeps of one video: tensors whose meaning only it knows.
#[derive(Debug, Clone)]
pub struct Code(pub Vec<Tensor>);

/// The candidate moments of one video in the joint space.
#[derive(Debug, Clone)]
pub struct Moments {
    /// Where they lie, as fractions of what the clips cover.
    pub spans: Vec<NormSpan>,
    /// `[moments, width]`, unit rows.
    pub embeddings: Tensor,
}

/// What a corpus model says about one video.
#[derive(Debug, Clone, Default)]
pub struct VideoAnswer {
    /// How well the video as a whole fits the query.
    pub video_score: f32,
    /// Its best moments, scores comparable over videos, best first.
    pub moments: Vec<Proposal>,
}

/// What a model says about every pair of a batch.
#[derive(Debug, Clone)]
pub struct BatchAnswers {
    /// Spans, best first, as [`Model::propose`] gives them.
    pub proposals: Vec<Vec<Proposal>>,
    /// For every real clip how well it fits the query; larger is better, comparable within one query.
    pub saliency: Option<Vec<Vec<f32>>>,
}

impl BatchAnswers {
    /// Nothing about so many pairs.
    pub(crate) fn none(pairs: usize) -> Self {
        Self { proposals: vec![Vec::new(); pairs], saliency: None }
    }
}

/// A candidate span with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposal {
    /// As fractions of what the clips cover.
    pub span: NormSpan,
    /// Larger is better; comparable within one query.
    pub score: f32,
}

/// A video in so many clips of one length: what the spans of some models begin and end between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Number of clips.
    pub clips: usize,
}

impl Grid {
    /// Overlap of two spans that begin and end between clips, counted in clips: two that share one of two clips overlap by one half
    /// exactly, wherever they lie.
    ///
    /// ```
    /// use cuemark_core::NormSpan;
    /// use cuemark_models::Grid;
    /// let cell = |start: f64, end: f64| NormSpan::new(start / 14.0, end / 14.0).unwrap();
    /// let (a, b) = (cell(0.0, 5.0), cell(2.0, 6.0)); // three clips of six
    /// assert_eq!(Grid { clips: 14 }.iou(a, b), 0.5);
    /// assert!(a.iou_hull(b) > 0.5); // fractions round
    /// ```
    pub fn iou(self, a: NormSpan, b: NormSpan) -> f64 {
        let clip = |fraction: f64| (fraction * self.clips as f64).round() as i64;
        let ([a, c], [b, d]) = ([clip(a.start()), clip(a.end())], [clip(b.start()), clip(b.end())]);
        let (shared, hull) = ((c.min(d) - a.max(b)).max(0), c.max(d) - a.min(b));
        if hull > 0 { shared as f64 / hull as f64 } else { 0.0 }
    }
}

/// Walks `ranked` from the best and keeps what overlaps no kept one by more than `threshold`, at most `limit`. Cells of a `grid`
/// overlap as their clips do.
pub fn suppress(ranked: &[Proposal], threshold: f64, limit: usize, grid: Option<Grid>) -> Vec<Proposal> {
    let overlap = |a: NormSpan, b: NormSpan| grid.map_or_else(|| a.iou_hull(b), |grid| grid.iou(a, b));
    // Nothing overlaps by more than wholly: there is nothing to compare.
    if threshold >= 1.0 {
        return ranked.iter().take(limit).copied().collect();
    }
    let mut kept: Vec<Proposal> = Vec::new();
    for proposal in ranked {
        if kept.len() == limit {
            break;
        }
        if kept.iter().all(|earlier| overlap(earlier.span, proposal.span) <= threshold) {
            kept.push(*proposal);
        }
    }
    kept
}

/// The value that training makes smaller, and the parts it is made of.
#[derive(Debug, Clone)]
pub struct Loss {
    /// The scalar to differentiate.
    pub total: Tensor,
    /// Its parts as they are logged: name and scalar, before weighting.
    pub parts: Vec<(&'static str, Tensor)>,
}

impl Loss {
    /// The parts of the last of several layers that predict sets.
    pub(crate) fn parts_of(layers: &[crate::losses::SetLosses]) -> Vec<(&'static str, Tensor)> {
        let parts = |last: &crate::losses::SetLosses| {
            vec![("span", last.span.clone()), ("overlap", last.overlap.clone()), ("label", last.label.clone())]
        };
        layers.last().map(parts).unwrap_or_default()
    }
}

impl From<Tensor> for Loss {
    fn from(total: Tensor) -> Self {
        Self { total, parts: Vec::new() }
    }
}

/// How clips and words must be brought to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// What is done to each feature row first.
    pub normalise: Normalise,
    /// What is done instead to rows that stand for words, those of queries and subtitles; `None`: the same.
    pub normalise_words: Option<Normalise>,
    /// How the rows are brought to the model's length.
    pub resample: Resample,
    /// What is read of a query.
    pub text: Text,
    /// What one batch is made of.
    pub batch_by: BatchBy,
    /// Whether batches carry parses of the queries.
    pub parses: bool,
    /// The most phrases of a query that batches carry; 0 for none.
    pub phrases: usize,
    /// Whether batches carry, for every query, another video drawn at random.
    pub other_videos: bool,
    /// Whether batches carry the similarity of queries and videos.
    pub similarity: bool,
    /// Whether batches carry the spans while training.
    pub spans: bool,
    /// Whether batches carry every window and the ratings of clips while training.
    pub joint: bool,
    /// The most words of a query that are read, for models that cut the rest off and leave it to others to say so.
    pub words: Option<usize>,
}

impl Input {
    /// Pairs of a video and a query in words, rows normalised and averaged to `clips`, spans known: what most 2D-map models read.
    pub fn pairs(clips: usize) -> Self {
        Self {
            normalise: Normalise::L2,
            normalise_words: None,
            resample: Resample::MeanBins { rows: clips },
            text: Text::Words,
            batch_by: BatchBy::Pairs,
            parses: false,
            phrases: 0,
            other_videos: false,
            similarity: false,
            spans: true,
            joint: false,
            words: None,
        }
    }
}

impl Input {
    /// Pairs of a video and a query of at most so many words, rows normalised and never averaged, at most `clips` of them, windows
    /// and ratings known: what models of moments and highlights read.
    pub fn joint(clips: usize, words: usize) -> Self {
        let (normalise, resample) = (Normalise::L2Eps, Resample::Cut { rows: clips });
        Self { normalise, resample, joint: true, words: Some(words), ..Self::pairs(clips) }
    }
}

/// What a model reads of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Words as vectors.
    Words,
    /// Tokens by number, between a start and an end marker.
    Tokens,
}

/// What one batch is made of; its size counts these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchBy {
    /// Pairs of a video and one query.
    Pairs,
    /// Videos with all their queries.
    Videos,
}

/// What the data gives a model before it is built.
#[derive(Debug, Clone)]
pub struct Given {
    /// Width of a clip's features.
    pub visual: usize,
    /// Width of a clip's subtitle features; 0 when there are none.
    pub subtitle: usize,
    /// Width of a clip's audio features; 0 when there are none.
    pub audio: usize,
    /// Width of a word vector.
    pub words: usize,
    /// Number of words in the vocabulary, padding included.
    pub vocabulary: usize,
    /// Who turns tokens into vectors, for models that read tokens.
    pub tokens: TokenVectors,
    /// Word vectors of the most frequent verbs of the training queries, most frequent first, `[verbs, words]`.
    pub verbs: Option<Tensor>,
}

impl Given {
    /// Widths alone.
    pub fn widths(visual: usize, words: usize, vocabulary: usize) -> Self {
        Self { visual, subtitle: 0, audio: 0, words, vocabulary, tokens: TokenVectors::Own, verbs: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of cells that overlap by exactly one half, on the grids of the published sizes: `<=` keeps both.
    #[test]
    fn cells_that_overlap_by_the_threshold_exactly_are_both_kept() {
        let mut rounded = 0;
        for clips in [14, 16, 28, 48] {
            let cells = |first: usize| (first + 1..=clips).map(move |end| (first, end));
            let cells: Vec<(usize, usize)> = (0..clips).flat_map(cells).collect();
            let proposal = |(start, end): (usize, usize), score: f32| {
                let span = NormSpan::new(start as f64 / clips as f64, end as f64 / clips as f64).unwrap();
                Proposal { span, score }
            };
            for a in &cells {
                for b in &cells {
                    let (shared, hull) = (a.1.min(b.1).saturating_sub(a.0.max(b.0)), a.1.max(b.1) - a.0.min(b.0));
                    let ranked = [proposal(*a, 0.9), proposal(*b, 0.8)];
                    let kept = suppress(&ranked, 0.5, 2, Some(Grid { clips })).len();
                    assert_eq!(kept, if 2 * shared <= hull { 2 } else { 1 }, "{a:?} {b:?} of {clips}");
                    rounded += usize::from(2 * shared == hull && suppress(&ranked, 0.5, 2, None).len() == 1);
                }
            }
        }
        assert!(rounded > 0, "fractions would have done");
    }
}
