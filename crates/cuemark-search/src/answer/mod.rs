//! From a question to ranked moments.
//!
//! 1. The sentence becomes an embedding, moved away from what is not wanted.
//! 2. The engine proposes candidates.
//! 3. Every moment of the best videos is scored: their full maps, without what everything has in common where the curve says so.
//! 4. Where the encoder says when a longer window is as good, windows are joined into stretches.
//! 5. Overlapping answers of one video are merged: non-maximum suppression at the question's threshold, and of those that
//!    differ by a clip the best one.
//! 6. Scores become probabilities, and each answer says which words it hangs on.
//!
//! That is what is seen. `tracks.rs` asks what is said and written as well, and `fuse.rs` makes one ranking of all.

mod background;
mod calibration;
mod common;
mod explain;
mod fuse;
mod logistic;
mod meant;
mod merge;
mod question;
mod reliability;
mod right;
mod size;
mod stretch;
mod syntax;
mod tracks;
mod unseen;
mod usual;

use std::sync::Arc;

use cuemark_core::{Span, VideoId};
use rustc_hash::FxHashMap;

pub(crate) use background::{Background, Spread};
pub use calibration::{Calibration, fit_calibration};
pub(crate) use calibration::{JudgedAnswer, fit_with_scores};
pub(crate) use common::spread;
pub use explain::{MatchedConcept, MatchedWord};
pub use fuse::Because;
pub(crate) use meant::{Counted, Meant};
pub(crate) use merge::distinct;
pub use question::{Question, Stages};
pub use reliability::{Reliability, ReliabilityBin};
pub use right::RightMoments;
pub use size::{SizedAnswer, fit_at_sizes};
use stretch::AsGood;
pub use unseen::UnseenWord;
pub(crate) use usual::{Moments, Usual};

use crate::engine::{Effort, Hit, Nearest, rank};
use crate::{Embedding, Index, Result, SearchError};

/// The overlap above which the worse of two answers of one video is dropped, unless a question says otherwise.
pub(crate) const ANSWER_NMS: f64 = 0.5;
/// How much a term that is not wanted counts against one that is.
const NEGATIVE_WEIGHT: f32 = 0.5;
/// Candidates per wanted answer.
const CANDIDATES: usize = 20;
/// The fewest candidates.
const LEAST_CANDIDATES: usize = 200;
/// How many times more candidates are asked for when those there are come from too few videos.
const MORE: usize = 8;
/// The fewest videos that are looked into.
const LEAST_VIDEOS: usize = 20;
/// The best moments whose mean is a video's score in the first of two stages.
const POOLED: usize = 8;
/// Films and their moments, and **seconds** of each film, among which cuts are fitted: see [`crate::Encoder::rises_per_doubling`].
const CUT_AMONG: f64 = 36.0;
const MOMENTS_OF_FILM: f64 = 12.0;
const SECONDS_OF_FILM: f64 = 7.5;
/// Doublings that are counted at most. Among fewer films nothing is taken off: what is there stands as high among few as among many.
const DOUBLINGS: f64 = 5.0;
/// Cells of the strip along a video's timeline.
pub const STRIP: usize = 64;

/// Answers to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Best first.
    pub moments: Vec<Answer>,
    /// Words of the question that mean nothing to the encoder.
    pub unknown_words: Vec<String>,
    /// Words of the question that nothing the encoder recognises comes near: by sight it cannot be asked for them.
    pub unseen: Vec<UnseenWord>,
    /// How many of [`Answers::moments`] reach the question's least probability: 0 means that nothing is good enough.
    pub good: usize,
    /// How the best answer by sight stands beside the best that the question can have, less what chance does among so many films:
    /// what a cut is held against. `None` where nothing is seen.
    pub standing: Option<f64>,
}

impl Answers {
    /// None at all.
    fn none() -> Self {
        Self { moments: Vec::new(), unknown_words: Vec::new(), unseen: Vec::new(), good: 0, standing: None }
    }

    /// The answers that reach the question's least probability, best first.
    pub fn likely(&self) -> &[Answer] {
        self.moments.get(..self.good).unwrap_or(&self.moments)
    }
}

/// A moment that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The video.
    pub video: VideoId,
    /// Where in it, in **seconds**.
    pub span: Span,
    /// The cosine between question and moment, less what is not wanted; of words, the share of the question that is there.
    pub score: f32,
    /// The probability that this answers the question, given how the question scores against the rest of the index.
    pub probability: f64,
    /// The words that speak for it, the weightiest first; empty for questions without words.
    pub words: Vec<MatchedWord>,
    /// What was recognised in it and speaks for it, the weightiest first; empty for encoders that recognise nothing by name.
    pub concepts: Vec<MatchedConcept>,
    /// What each track has to say for it, the weightiest first.
    pub because: Vec<Because>,
}

impl Index {
    /// Answers a question by what is seen.
    fn answer_seen(&self, question: &Question, curve: &Calibration) -> Result<Answers> {
        // First, since it has every sentence encoded that is needed on the way.
        let explainer = match &question.text {
            Some(text) => explain::Explainer::new(self, text)?,
            None => explain::Explainer::wordless(),
        };
        let asked = Asked::new(self, question, curve)?;
        let candidates = asked.candidates()?;
        let looked_into = LEAST_VIDEOS.max(2 * question.limit);
        let videos = match question.stages {
            Stages::One => best_videos(&candidates, looked_into, 1),
            Stages::Two { videos } => best_videos(&candidates, videos.max(1), POOLED),
        };
        let mut hits = Vec::new();
        for (video, video_score) in &videos {
            let mut found = asked.inside(video)?;
            if let Stages::Two { .. } = question.stages {
                // The video was chosen first: its score leads, the moment's decides inside.
                for hit in &mut found {
                    hit.score = hit.score.midpoint(*video_score);
                }
            }
            hits.extend(asked.joined(video, found)?);
        }
        rank(&mut hits, usize::MAX);
        let spans: Vec<(&VideoId, Span)> = hits.iter().map(|hit| (&hit.video, hit.span)).collect();
        let kept = distinct(&spans, question.nms, question.limit);
        let kept: Vec<Hit> = kept.into_iter().filter_map(|place| hits.get(place).cloned()).collect();
        asked.finish(kept, explainer)
    }

    /// Each cell has the best of the shorter moments that cover it, so that one long moment does not hide where in it the
    /// answer lies.
    fn strip_seen(&self, question: &Question, video: &VideoId) -> Result<Vec<f64>> {
        let curve = self.calibration();
        let asked = Asked::new(self, question, &curve)?;
        let Some(entry) = self.engine().video(video)? else {
            return Err(SearchError::UnknownVideo { video: video.clone() });
        };
        let hits = asked.inside(video)?;
        let cell = entry.duration / STRIP as f64;
        let longest = (entry.duration / 4.0).max(cell);
        let mut best = vec![f32::NEG_INFINITY; STRIP];
        for hit in hits.iter().filter(|hit| hit.span.len() <= longest) {
            let first = (hit.span.start() / cell).floor().max(0.0) as usize;
            let end = ((hit.span.end() / cell).ceil() as usize).min(STRIP);
            for best in best.iter_mut().take(end).skip(first) {
                *best = best.max(hit.score);
            }
        }
        let probability = |score: &f32| if score.is_finite() { asked.probability(*score) } else { 0.0 };
        Ok(best.iter().map(probability).collect())
    }
}

/// The best videos among candidates, each with the mean of its `pooled` best moments, best first.
fn best_videos(candidates: &[Hit], count: usize, pooled: usize) -> Vec<(VideoId, f32)> {
    let mut of_video: FxHashMap<&VideoId, Vec<f32>> = FxHashMap::default();
    let mut order: Vec<&VideoId> = Vec::new();
    for hit in candidates {
        let scores = of_video.entry(&hit.video).or_insert_with(|| {
            order.push(&hit.video);
            Vec::new()
        });
        if scores.len() < pooled {
            scores.push(hit.score);
        }
    }
    // A video with fewer candidates than are pooled counts its missing ones as bad as the worst candidate.
    let worst = candidates.last().map_or(0.0, |hit| hit.score);
    let mean = |scores: &[f32]| (scores.iter().sum::<f32>() + worst * (pooled - scores.len()) as f32) / pooled as f32;
    let mut videos: Vec<(VideoId, f32)> = order
        .into_iter()
        .map(|video| (video.clone(), of_video.get(video).map_or(0.0, |scores| mean(scores))))
        .collect();
    videos.sort_by(|a, b| b.1.total_cmp(&a.1));
    videos.truncate(count);
    videos
}

/// How many moments a question is asked of, where the curve wants to know.
fn searched(index: &Index, question: &Question, curve: &Calibration) -> Result<usize> {
    if !curve.hangs_on_size() {
        return Ok(0);
    }
    let status = index.engine().status()?;
    let among = question.filter.videos.as_ref().map_or(status.videos, |videos| videos.len().min(status.videos));
    Ok(status.moments * among / status.videos.max(1))
}

/// How much higher the best answer stands by chance in what is searched than among the films that cuts are fitted on.
fn by_chance(index: &Index, question: &Question) -> Result<f64> {
    let rises = index.encoder().rises_per_doubling();
    if rises == 0.0 {
        return Ok(0.0);
    }
    let films = match &question.filter.videos {
        Some(videos) => {
            let mut seconds = 0.0;
            for video in videos {
                seconds += index.engine().video(video)?.map_or(0.0, |entry| entry.duration);
            }
            seconds / SECONDS_OF_FILM
        }
        None => index.engine().status()?.moments as f64 / MOMENTS_OF_FILM,
    };
    Ok(rises * (films.max(1.0) / CUT_AMONG).log2().clamp(0.0, DOUBLINGS))
}

/// A question with its embeddings.
struct Asked<'a> {
    index: &'a Index,
    question: &'a Question,
    wanted: Embedding,
    unwanted: Vec<Embedding>,
    background: Arc<Background>,
    spread: Spread,
    /// What a cut holds heights above.
    floor: f64,
    /// How much higher the best answer stands by chance than where cuts are fitted.
    by_chance: f64,
    /// The curve for as many moments as are searched.
    curve: Calibration,
}

impl<'a> Asked<'a> {
    fn new(index: &'a Index, question: &'a Question, curve: &Calibration) -> Result<Self> {
        let wanted = match (&question.text, &question.like) {
            (Some(text), None) => index.sentence(text)?,
            (None, Some(moment)) => index.embedding_of(moment)?,
            (Some(text), Some(moment)) => {
                let (a, b) = (index.sentence(text)?, index.embedding_of(moment)?);
                let sum = a.numbers().iter().zip(b.numbers()).map(|(a, b)| a + b).collect();
                Embedding::unit(sum).unwrap_or(a)
            }
            (None, None) => {
                return Err(SearchError::Question {
                    problem: "the question is empty".to_owned(),
                    advice: "ask for a moment in a sentence, such as \"a red ball spins\"".into(),
                });
            }
        };
        let unwanted = question.not.iter().map(|text| index.sentence(text)).collect::<Result<Vec<_>>>()?;
        for video in question.filter.videos.iter().flatten() {
            if index.engine().video(video)?.is_none() {
                return Err(SearchError::UnknownVideo { video: video.clone() });
            }
        }
        let background = index.background()?;
        let spread = spread(&background, curve, &wanted);
        let floor = if curve.above_usual { index.usual()?.score(&wanted, &spread) } else { 0.0 };
        let by_chance = by_chance(index, question)?;
        let curve = curve.among(searched(index, question, curve)?);
        Ok(Self { index, question, wanted, unwanted, background, spread, floor, by_chance, curve })
    }

    /// How an answer of that score stands: what a cut is held against.
    fn standing(&self, score: f32) -> f64 {
        self.spread.share(score, self.floor) - self.by_chance
    }

    fn nearest(&self, count: usize, effort: Effort) -> Result<Vec<Hit>> {
        let moved =
            self.unwanted.iter().fold(self.wanted.clone(), |wanted, not| wanted.away_from(not, NEGATIVE_WEIGHT));
        self.index.engine().nearest(&moved, &Nearest { count, filter: self.question.filter.clone(), effort })
    }

    /// Moments of as many videos as there are to be answers, or all there are.
    ///
    /// With that many videos among them nothing is overlooked: every video's best moment is an answer before its others are
    /// merged away, so the last answer is at least as good as the best of any video that is not among the candidates.
    fn candidates(&self) -> Result<Vec<Hit>> {
        let mut count = (CANDIDATES * self.question.limit).max(LEAST_CANDIDATES);
        loop {
            let found = self.nearest(count, self.question.effort)?;
            let mut videos: Vec<&VideoId> = found.iter().map(|hit| &hit.video).collect();
            videos.sort_unstable();
            videos.dedup();
            if found.len() < count || videos.len() >= self.question.limit {
                return Ok(found);
            }
            count = count.saturating_mul(MORE);
        }
    }

    /// Every admitted moment of one video with its final score.
    fn inside(&self, video: &VideoId) -> Result<Vec<Hit>> {
        let common = common::taken_out(&self.background, &self.curve);
        let scores = |to: &Embedding| self.index.scores_without(common, video, to);
        let Some(mut scored) = scores(&self.wanted)? else { return Ok(Vec::new()) };
        for not in &self.unwanted {
            let against = scores(not)?.unwrap_or_default();
            for ((_, score), (_, against)) in scored.iter_mut().zip(against) {
                *score -= NEGATIVE_WEIGHT * against.max(0.0);
            }
        }
        let like = self.question.like.as_ref();
        let itself =
            |span: Span| like.is_some_and(|like| &like.video == video && like.span.iou(span) > self.question.nms);
        let placed = scored.into_iter().enumerate().map(|(place, (span, score))| (place, span, score));
        let admitted = placed.filter(|(_, span, _)| self.question.filter.admits_span(*span) && !itself(*span));
        Ok(admitted
            .map(|(place, span, score)| Hit { place: Some(place), ..Hit::new(video.clone(), span, score) })
            .collect())
    }

    /// One answer per stretch of a video, where the encoder says when a longer window is as good; `nms` of 1 joins nothing.
    ///
    /// Windows are compared by all that they score: what they have in common with everything is what a longer window keeps.
    fn joined(&self, video: &VideoId, mut windows: Vec<Hit>) -> Result<Vec<Hit>> {
        let Some(keeps) = self.index.encoder().keeps_when_joined().filter(|_| self.question.nms < 1.0) else {
            return Ok(windows);
        };
        rank(&mut windows, usize::MAX);
        let plain = match common::taken_out(&self.background, &self.curve) {
            Some(_) => self.index.engine().scores(video, &self.wanted)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let as_it_is = |hit: &Hit| hit.place.and_then(|place| plain.get(place)).map_or(hit.score, |(_, score)| *score);
        let rule = AsGood { floor: self.background.spread(&self.wanted).mean(), keeps };
        Ok(stretch::stretches(&windows, as_it_is, rule, self.question.limit))
    }

    fn probability(&self, score: f32) -> f64 {
        self.curve.probability(self.spread.surprise(score), f64::from(score))
    }

    fn finish(&self, hits: Vec<Hit>, explainer: explain::Explainer) -> Result<Answers> {
        // Something is always nearest, but a question that means nothing to the encoder has no answer.
        let hits = if explainer.means_nothing && self.question.like.is_none() { Vec::new() } else { hits };
        let mut moments = Vec::with_capacity(hits.len());
        for hit in hits {
            // Somebody may have removed or replaced the video since it was found: it is no answer any more, and no reason to fail.
            let Some(embedding) = self.index.engine().embedding(&hit)? else { continue };
            let words = explainer.words(&embedding);
            let concepts = self.index.encoder().concepts(&self.wanted, &embedding);
            let probability = explainer.understood * self.probability(hit.score);
            let Hit { video, span, score, .. } = hit;
            moments.push(Answer { video, span, score, probability, words, concepts, because: Vec::new() });
        }
        // Also of who asks for everything: what lies below the cut must not stand before what was said.
        let admits = |answer: &&Answer| self.curve.admits(self.standing(answer.score));
        let least = self.curve.least(self.question.least);
        let good = moments.iter().take_while(admits).filter(|answer| answer.probability >= least).count();
        let standing = moments.first().map(|best| self.standing(best.score));
        let unseen = match &self.question.text {
            Some(text) => unseen::unseen(self.index, text)?,
            None => Vec::new(),
        };
        Ok(Answers { moments, unknown_words: explainer.unknown, unseen, good, standing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_with_many_good_moments_beats_one_with_a_single_lucky_one() {
        let hit = |video: &str, score| Hit::new(video.into(), Span::whole(1.0), score);
        let candidates =
            [hit("lucky", 0.9), hit("steady", 0.8), hit("steady", 0.79), hit("steady", 0.78), hit("x", 0.1)];
        assert_eq!(best_videos(&candidates, 1, 1)[0].0.as_str(), "lucky");
        assert_eq!(best_videos(&candidates, 1, 3)[0].0.as_str(), "steady");
        assert!(best_videos(&[], 3, 8).is_empty());
    }
}
