//! Queries with their videos and spans, ready to be put into batches.

use cuemark_core::{GradedMoment, Highlights, QueryId, Rng, Span, Split, Truth, VideoId};
use cuemark_models::BatchBy;
use cuemark_text::{Parse, Vocabulary};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::footage::Footage;
use crate::text::{ReadQuery, Reader};
use crate::{Result, TrainError};

/// The queries of a split as a model reads them.
#[derive(Debug)]
pub(crate) struct Examples {
    /// Every video that is asked about, in the order of first asking.
    pub(crate) videos: Vec<VideoId>,
    /// One per query and moment.
    pub(crate) list: Vec<Example>,
    /// For every video its examples.
    pub(crate) of_video: Vec<Vec<usize>>,
    /// Moments that no answer could meet.
    pub(crate) out_of_reach: OutOfReach,
}

/// One query with the video it asks of.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) query: QueryId,
    /// Position of the truth in its split.
    pub(crate) truth: usize,
    /// Position in [`Examples::videos`].
    pub(crate) video: usize,
    pub(crate) words: Vec<u32>,
    pub(crate) parse: Option<Parse>,
    pub(crate) phrases: Vec<Vec<u32>>,
    /// Where the answer lies; `None` when nobody said.
    pub(crate) span: Option<Span>,
    /// How relevant that moment is, in 0..1.
    pub(crate) relevance: f32,
    /// Every right moment of this video, for models that learn from all of them; else none.
    pub(crate) windows: Vec<Span>,
    /// What people think of its clips, for models that learn from it.
    pub(crate) rated: Option<Highlights>,
    /// How many words the query has.
    pub(crate) said: usize,
}

/// Moments that no answer of the model could meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfReach {
    /// They begin after the last clip that the model sees.
    pub past_the_end: usize,
    /// They are shorter than half of the model's shortest answer.
    pub too_short: usize,
    /// They are longer than two of the stretches that their video is cut into: no answer overlaps them by half.
    #[serde(default)]
    pub too_long: usize,
    /// Of so many.
    pub moments: usize,
}

/// Queries of which a model reads only the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CutQueries {
    /// So many have more words than the model reads.
    pub queries: usize,
    /// Words that it reads.
    pub words: usize,
}

impl CutQueries {
    /// What a person should read about it; nothing when no query is cut.
    pub fn line(&self) -> Option<String> {
        let Self { queries, words } = *self;
        let have = if queries == 1 { "query has" } else { "queries have" };
        let cut =
            || format!("cut: {queries} {have} more than {words} words, of which the model reads the first {words}");
        (queries > 0).then(cut)
    }
}

/// Largest grade of relevance; a moment of this grade weighs 1.
const TOP_GRADE: f32 = 4.0;

impl Examples {
    /// Every query that names a video, with its moments.
    pub(crate) fn of(split: &Split, reader: &Reader, vocabulary: &Vocabulary) -> Result<Self> {
        let mut examples =
            Self { videos: Vec::new(), list: Vec::new(), of_video: Vec::new(), out_of_reach: OutOfReach::default() };
        let mut places: FxHashMap<VideoId, usize> = FxHashMap::default();
        for (position, truth) in split.queries.iter().enumerate() {
            let read = reader.read(&truth.query)?;
            let numbers = Numbers::of(&read, reader, vocabulary)?;
            for (video, span, relevance) in moments(truth) {
                let place = examples.place(&mut places, &video);
                let asked = Example::asked(position, truth, &read, &numbers);
                examples.push(Example { video: place, span, relevance, ..asked });
            }
        }
        Ok(examples)
    }

    /// One example per query and video that `asked` names, for answering.
    pub(crate) fn asking(
        split: &Split,
        reader: &Reader,
        vocabulary: &Vocabulary,
        asked: impl Fn(&Truth) -> Result<Vec<VideoId>>,
    ) -> Result<Self> {
        let mut examples =
            Self { videos: Vec::new(), list: Vec::new(), of_video: Vec::new(), out_of_reach: OutOfReach::default() };
        let mut places: FxHashMap<VideoId, usize> = FxHashMap::default();
        for (position, truth) in split.queries.iter().enumerate() {
            let read = reader.read(&truth.query)?;
            let numbers = Numbers::of(&read, reader, vocabulary)?;
            for video in asked(truth)? {
                let place = examples.place(&mut places, &video);
                examples.push(Example { video: place, ..Example::asked(position, truth, &read, &numbers) });
            }
        }
        Ok(examples)
    }

    fn place(&mut self, places: &mut FxHashMap<VideoId, usize>, video: &VideoId) -> usize {
        *places.entry(video.clone()).or_insert_with(|| {
            self.videos.push(video.clone());
            self.of_video.push(Vec::new());
            self.videos.len() - 1
        })
    }

    fn push(&mut self, example: Example) {
        self.of_video[example.video].push(self.list.len());
        self.list.push(example);
    }

    /// Drops examples that cannot be learnt from: no span, or one that the model does not see.
    pub(crate) fn for_training(mut self, footage: &Footage, shortest: f64, split: &str) -> Result<Self> {
        let mut kept = Vec::with_capacity(self.list.len());
        let all = self.list.len();
        for mut example in std::mem::take(&mut self.list) {
            let Some(span) = example.span else { continue };
            let clips = footage.whole(&self.videos[example.video])?;
            if example.windows.is_empty() {
                example.windows.push(span);
            }
            // Counted and dropped here, once: a moment past the last clip has no clip to be learnt from.
            example.windows.retain(|window| self.count_reach(*window, clips.covered, shortest));
            example.span = example.windows.first().copied();
            if example.span.is_some() {
                kept.push(example);
            }
        }
        if kept.is_empty() {
            let past = self.out_of_reach.past_the_end;
            let why = format!("{all} queries, {past} past the last clip that the model sees");
            return Err(TrainError::EmptySplit { split: split.to_owned(), why });
        }
        // Dropping moved the others up. Videos keep their places, by which examples name them; some have nothing to ask any more.
        self.of_video.iter_mut().for_each(Vec::clear);
        for (position, example) in kept.iter().enumerate() {
            self.of_video[example.video].push(position);
        }
        self.list = kept;
        Ok(self)
    }

    /// Gives every example all right moments of its video and what people think of its clips.
    ///
    /// # Errors
    /// For a query without a word, which such models cannot read.
    pub(crate) fn with_windows(mut self, split: &Split) -> Result<Self> {
        for example in &mut self.list {
            let Some(truth) = split.queries.get(example.truth) else { continue };
            let video = &self.videos[example.video];
            let own = |moment: &&cuemark_core::Moment| moment.video == *video;
            example.windows = truth.right().filter(own).map(|moment| moment.span).collect();
            example.rated = truth.highlights.as_deref().cloned();
        }
        self.with_words()
    }

    /// Itself, when every query has a word.
    ///
    /// # Errors
    /// For the first query without one.
    pub(crate) fn with_words(self) -> Result<Self> {
        match self.list.iter().find(|example| example.said == 0) {
            Some(example) => Err(TrainError::Query { query: example.query.to_string(), problem: "has no word" }),
            None => Ok(self),
        }
    }

    /// Takes every span away, for models that learn without: which pairs there are is all that is left to learn from.
    pub(crate) fn without_spans(mut self) -> Self {
        for example in &mut self.list {
            (example.span, example.relevance) = (None, 1.0);
        }
        self
    }

    /// By truth the videos that hold something to learn for it, in order.
    pub(crate) fn answering(&self) -> Vec<Vec<usize>> {
        let truths = self.list.iter().map(|example| example.truth + 1).max().unwrap_or(0);
        let mut videos: Vec<Vec<usize>> = vec![Vec::new(); truths];
        for example in &self.list {
            videos[example.truth].push(example.video);
        }
        for videos in &mut videos {
            videos.sort_unstable();
            videos.dedup();
        }
        videos
    }

    /// Counts one moment; whether the model sees any of it.
    pub(crate) fn count_reach(&mut self, span: Span, covered: f64, shortest: f64) -> bool {
        self.out_of_reach.moments += 1;
        // One that only ends too late is kept: its target is clipped to what the model sees.
        let seen = span.start() < covered;
        self.out_of_reach.past_the_end += usize::from(!seen);
        // At best the shortest answer contains such a moment, and then overlaps it by less than one half.
        self.out_of_reach.too_short += usize::from(seen && span.len() < 0.5 * shortest * covered);
        seen
    }

    /// Positions of the examples of one epoch, `size` pairs or videos a batch, in an order that depends on the seed alone.
    pub(crate) fn epoch(&self, by: BatchBy, size: usize, mut rng: Rng) -> Vec<Vec<usize>> {
        if by == BatchBy::Pairs {
            let mut order: Vec<usize> = (0..self.list.len()).collect();
            rng.shuffle(&mut order);
            // The last batch may be small, and is kept: dropping it would leave other examples out in every epoch.
            return order.chunks(size).map(<[usize]>::to_vec).collect();
        }
        let mut order: Vec<usize> = (0..self.videos.len()).filter(|video| !self.of_video[*video].is_empty()).collect();
        rng.shuffle(&mut order);
        let of = |videos: &[usize]| videos.iter().flat_map(|video| self.of_video[*video].iter().copied()).collect();
        let mut chunks: Vec<&[usize]> = order.chunks(size).collect();
        // A last video by itself would have nothing to be told apart from.
        if let [.., before, [_]] = chunks[..] {
            let joined = &order[order.len() - before.len() - 1..];
            chunks.truncate(chunks.len() - 2);
            chunks.push(joined);
        }
        chunks.into_iter().map(of).collect()
    }
}

/// The moments of a query to learn from, with the weight of each: all that are graded or come with a similarity (the sets
/// of `cuemark rank pseudo-train`), else the first that is simply right.
fn moments(truth: &Truth) -> Vec<(VideoId, Option<Span>, f32)> {
    // A grade is somebody's judgement, a similarity a comparison of sentences: where both are, the judgement counts.
    let graded = truth.moments.iter().any(|graded| graded.relevance.is_some());
    let similarities = if graded { None } else { similarities(truth) };
    let weight = |place: usize, graded: &GradedMoment| match (&similarities, graded.relevance) {
        (_, Some(grade)) => (grade.value() as f32 / TOP_GRADE).min(1.0),
        (Some(similarities), None) => similarities[place],
        (None, None) => 1.0,
    };
    let moment = |(place, graded): (usize, &GradedMoment)| {
        (graded.moment.video.clone(), Some(graded.moment.span), weight(place, graded))
    };
    let weighted = truth.moments.iter().enumerate().map(moment).filter(|(.., weight)| *weight > 0.0);
    let all = graded || similarities.is_some();
    // Models that learn from several right moments get them all in one example (`with_windows`); an example for each would
    // count a query as often as it has moments.
    let found: Vec<_> = if all { weighted.collect() } else { weighted.take(1).collect() };
    if found.is_empty() {
        return truth.video.iter().map(|video| (video.id.clone(), None, 1.0)).collect();
    }
    found
}

/// How like its query each moment is, in 0..1; `None` unless every moment says.
fn similarities(truth: &Truth) -> Option<Vec<f32>> {
    let fields = truth.extra.get("moments")?.as_array()?;
    // They stand in a list beside the moments: were a moment dropped on reading, every later one would get its neighbour's.
    if fields.len() != truth.moments.len() || fields.is_empty() {
        return None;
    }
    let of = |fields: &serde_json::Value| Some(fields.get("similarity")?.as_f64()?.clamp(0.0, 1.0) as f32);
    fields.iter().map(of).collect()
}

/// A query and its phrases as numbers.
pub(crate) struct Numbers {
    pub(crate) words: Vec<u32>,
    pub(crate) phrases: Vec<Vec<u32>>,
}

impl Numbers {
    pub(crate) fn of(read: &ReadQuery, reader: &Reader, vocabulary: &Vocabulary) -> Result<Self> {
        Ok(Self { words: reader.sentence(read, vocabulary)?, phrases: reader.phrases(read, vocabulary)? })
    }
}

impl Example {
    /// The query at `position` of its split, asked of the first video and answered nowhere.
    fn asked(position: usize, truth: &Truth, read: &ReadQuery, numbers: &Numbers) -> Self {
        Self {
            query: truth.query.id.clone(),
            truth: position,
            video: 0,
            words: numbers.words.clone(),
            parse: read.parse.clone(),
            phrases: numbers.phrases.clone(),
            span: None,
            relevance: 1.0,
            windows: Vec::new(),
            rated: None,
            said: read.words.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Query, Relevance};
    use serde_json::json;

    use super::*;

    fn truth(grades: &[Option<f64>]) -> Truth {
        let mut truth = Truth::bare(Query { id: "q".into(), text: "a dog runs".to_owned() });
        let graded = |(place, grade): (usize, &Option<f64>)| {
            let video = VideoId::from(format!("v{place}").as_str());
            let relevance = grade.map(|grade| Relevance::new(grade).unwrap());
            GradedMoment { relevance, ..GradedMoment::right(video, Span::new(1.0, 2.0).unwrap()) }
        };
        truth.moments = grades.iter().enumerate().map(graded).collect();
        truth
    }

    fn weights(truth: &Truth) -> Vec<(String, f32)> {
        moments(truth).into_iter().map(|(video, _, weight)| (video.to_string(), weight)).collect()
    }

    #[test]
    fn grades_weigh_by_the_best_grade_and_what_is_wrong_is_left_out() {
        let found = weights(&truth(&[Some(4.0), Some(0.0), Some(1.0), Some(9.0)]));
        assert_eq!(found, [("v0".to_owned(), 1.0), ("v2".to_owned(), 0.25), ("v3".to_owned(), 1.0)]);
    }

    #[test]
    fn similarities_are_weights_themselves() {
        let mut pseudo = truth(&[None, None, None]);
        let fields = json!([{ "similarity": 1.0 }, { "similarity": 0.25 }, { "similarity": -0.5 }]);
        pseudo.extra.insert("moments", fields);
        assert_eq!(weights(&pseudo), [("v0".to_owned(), 1.0), ("v1".to_owned(), 0.25)]);
    }

    #[test]
    fn without_either_the_first_moment_is_learnt() {
        assert_eq!(weights(&truth(&[None, None])), [("v0".to_owned(), 1.0)]);
        let mut partly = truth(&[None, None]);
        partly.extra.insert("moments", json!([{ "similarity": 0.5 }, {}]));
        assert_eq!(weights(&partly), [("v0".to_owned(), 1.0)]);
    }
}
