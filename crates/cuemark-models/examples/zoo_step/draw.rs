//! Batches of random numbers with everything that a model may read, shaped as training shapes them.

use std::error::Error;

use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_models::{Batch, BatchBy, Given, Input, Phrases, QueryBatch, Targets, Text, VideoBatch};
use cuemark_tensor::{DType, Device, Tensor};
use cuemark_text::shallow_parse;

/// A query of a usual length, fifteen words, with verbs and nouns to parse.
const SENTENCE: &str = "the young woman opens a wooden box and puts the red ball on the table";
/// Phrases of a query, and words of each.
const PHRASES: (usize, usize) = (2, 4);
/// Words are drawn from the first of the vocabulary: a published checkpoint's own may be as small as PLRN's 1,111.
const KNOWN_WORDS: usize = 1_000;

/// What a batch is drawn for.
pub(crate) struct Draw<'a> {
    /// How the model reads.
    pub(crate) input: &'a Input,
    /// Widths.
    pub(crate) given: &'a Given,
    /// Pairs, or videos for models that learn from whole videos.
    pub(crate) size: usize,
    /// Queries of each video, for such models.
    pub(crate) per_video: usize,
}

impl Draw<'_> {
    /// The batch, on the CPU.
    pub(crate) fn batch(&self, seed: u64) -> Result<Batch, Box<dyn Error>> {
        let rng = &mut Rng::new(seed);
        let per_video = if self.input.batch_by == BatchBy::Videos { self.per_video } else { 1 };
        let queries = self.size * per_video;
        let other_videos = if self.input.other_videos { Some(self.videos(queries, rng)?) } else { None };
        let similarity = Tensor::zeros((queries, self.size), DType::F32, &Device::Cpu)?;
        Ok(Batch {
            videos: self.videos(self.size, rng)?,
            queries: self.queries(queries, per_video, rng)?,
            targets: if self.input.spans { Some(targets(queries, rng)?) } else { None },
            other_videos,
            similarity: self.input.similarity.then_some(similarity),
            negatives: None,
        })
    }

    fn videos(&self, count: usize, rng: &mut Rng) -> Result<VideoBatch, Box<dyn Error>> {
        let rows = self.input.resample.rows();
        let subtitle = match self.given.subtitle {
            0 => None,
            width => Some(normal(rng, &[count, rows, width])?),
        };
        Ok(VideoBatch {
            ids: (0..count).map(|number| VideoId::new(format!("v{number}"))).collect(),
            visual: normal(rng, &[count, rows, self.given.visual])?,
            subtitle,
            audio: None,
            lengths: vec![rows; count],
            mask: Tensor::ones((count, rows), DType::F32, &Device::Cpu)?,
            durations: vec![120.0; count],
        })
    }

    fn queries(&self, count: usize, per_video: usize, rng: &mut Rng) -> Result<QueryBatch, Box<dyn Error>> {
        let parse = shallow_parse(SENTENCE);
        let words = match self.input.text {
            Text::Words => parse.tokens.len(),
            Text::Tokens => parse.tokens.len() + 2, // the markers of its start and end
        };
        let (phrases, longest) = PHRASES;
        let phrases = match self.input.phrases.min(phrases) {
            0 => None,
            each => Some(Phrases {
                words: None,
                word_ids: self.numbers(rng, count * each, longest)?,
                lengths: vec![longest; count * each],
                per_query: vec![each; count],
            }),
        };
        Ok(QueryBatch {
            ids: (0..count).map(|number| QueryId::new(format!("q{number}"))).collect(),
            video: (0..count).map(|query| query / per_video).collect(),
            word_ids: self.numbers(rng, count, words)?,
            words: normal(rng, &[count, words, self.given.words])?,
            lengths: vec![words; count],
            mask: Tensor::ones((count, words), DType::F32, &Device::Cpu)?,
            parses: self.input.parses.then(|| vec![parse; count]),
            phrases,
        })
    }

    /// Numbers of words; 0 is padding and never drawn.
    fn numbers(&self, rng: &mut Rng, rows: usize, words: usize) -> Result<Tensor, Box<dyn Error>> {
        let most = self.given.vocabulary.min(KNOWN_WORDS).saturating_sub(1).max(1);
        let numbers: Vec<u32> = (0..rows * words).map(|_| 1 + rng.below(most) as u32).collect();
        Ok(Tensor::from_vec(numbers, (rows, words), &Device::Cpu)?)
    }
}

/// Normal numbers of this shape.
pub(crate) fn normal(rng: &mut Rng, shape: &[usize]) -> Result<Tensor, Box<dyn Error>> {
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| rng.normal() as f32).collect();
    Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?)
}

/// Moments of a sixteenth of their video, which sliding windows of every published size can meet.
fn targets(queries: usize, rng: &mut Rng) -> Result<Targets, Box<dyn Error>> {
    let span = |_| {
        let start = 0.9 * rng.uniform();
        NormSpan::new(start, start + 0.06 + 0.01 * rng.uniform()).ok_or("a span outside of its video")
    };
    let spans = (0..queries).map(span).collect::<Result<_, _>>()?;
    Ok(Targets { spans, relevance: None, joint: None, positives: None })
}
