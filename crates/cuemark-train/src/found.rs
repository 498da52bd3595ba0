//! What was found for a query, kept within bounds, and the lists that are made of it.

use cuemark_core::{
    Extra, Prediction, Predictions, QueryPredictions, RowCounts, Span, Task, TaskPredictions, Truth, VideoId,
};
use cuemark_models::Proposal;

use crate::footage::Clips;
use crate::predict::{Among, PredictOptions};

/// Moments held per answer that is wanted: stretches of one video overlap, so some of them will be dropped.
const SPARE: usize = 8;

/// The fewest videos that a list of videos keeps: the field reports R@100.
const VIDEOS: usize = 100;

/// A moment in seconds with its score.
#[derive(Debug, Clone)]
pub(crate) struct FoundMoment {
    video: VideoId,
    span: Span,
    score: f32,
}

impl FoundMoment {
    pub(crate) fn new(video: &VideoId, clips: &Clips, proposal: Proposal) -> Self {
        let at = |fraction: f64| clips.start + fraction.clamp(0.0, 1.0) * clips.covered;
        let span = Span::new(at(proposal.span.start()), at(proposal.span.end())).unwrap_or_else(|_| Span::whole(0.0));
        Self { video: video.clone(), span, score: proposal.score }
    }
}

/// Everything that was found for one query so far.
#[derive(Debug)]
pub(crate) struct Found {
    /// The video that the query was written for.
    own: Option<VideoId>,
    moments: Best<FoundMoment>,
    of_own: Best<FoundMoment>,
    videos: Best<(VideoId, f32)>,
    /// For every clip of the query's own video the sum of its scores, and how many stretches it was seen in.
    clips: Vec<(f64, usize)>,
}

impl Found {
    pub(crate) fn of(truth: &Truth, options: &PredictOptions) -> Self {
        let own = truth.video.as_ref().map(|video| &video.id);
        let own = own.or_else(|| truth.right().next().map(|moment| &moment.video));
        let moments = || Best::new(options.answers.saturating_mul(SPARE));
        let videos = Best::new(options.answers.max(VIDEOS));
        Self { own: own.cloned(), moments: moments(), of_own: moments(), videos, clips: Vec::new() }
    }

    /// The clips from `first` on have these scores. A clip that several stretches of a long video hold gets their mean.
    pub(crate) fn rate_clips(&mut self, video: &VideoId, first: usize, scores: &[f32]) {
        if self.own.as_ref() != Some(video) {
            return;
        }
        if self.clips.len() < first + scores.len() {
            self.clips.resize(first + scores.len(), (0.0, 0));
        }
        for ((sum, count), score) in self.clips[first..].iter_mut().zip(scores) {
            *sum += f64::from(*score);
            *count += 1;
        }
    }

    /// One score per clip; `None` when nothing scored clips.
    fn saliency(&self) -> Option<Vec<f64>> {
        let mean = |(sum, count): &(f64, usize)| sum / (*count).max(1) as f64;
        (!self.clips.is_empty()).then(|| self.clips.iter().map(mean).collect())
    }

    pub(crate) fn add(&mut self, moment: FoundMoment) {
        if self.own.as_ref() == Some(&moment.video) {
            self.of_own.add(moment.clone(), moment.score);
        }
        let score = moment.score;
        self.moments.add(moment, score);
    }

    /// A video, or one stretch of it, fits so well. The best stretch counts.
    pub(crate) fn see_video(&mut self, video: &VideoId, score: f32) {
        match self.videos.last_mut() {
            Some((last, best)) if last == video => *best = best.max(score),
            _ => self.videos.add((video.clone(), score), score),
        }
    }
}

/// The best of many, in bounded memory. Equal scores keep the order in which they came.
#[derive(Debug)]
struct Best<T> {
    limit: usize,
    held: Vec<(T, f32)>,
}

impl<T> Best<T> {
    fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), held: Vec::new() }
    }

    fn add(&mut self, item: T, score: f32) {
        // Cut only now and then: sorting at every call would cost more than it saves.
        if self.held.len() >= self.limit.saturating_mul(2) {
            self.cut();
        }
        self.held.push((item, score));
    }

    fn last_mut(&mut self) -> Option<&mut T> {
        self.held.last_mut().map(|(item, _)| item)
    }

    fn cut(&mut self) {
        self.held.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.held.truncate(self.limit);
    }

    fn into_ranked(mut self) -> Vec<T> {
        self.cut();
        self.held.into_iter().map(|(item, _)| item).collect()
    }
}

/// The lists that evaluators read: one, or by task where every video was searched.
pub(crate) fn predictions(
    truths: &[Truth],
    found: Vec<Found>,
    threshold: f64,
    options: &PredictOptions,
) -> Predictions {
    let (mut all, mut own, mut videos) = (Vec::new(), Vec::new(), Vec::new());
    for (truth, found) in truths.iter().zip(found) {
        let saliency = found.saliency();
        let rated = |ranked: Vec<Prediction>| QueryPredictions { saliency: saliency.clone(), ..list(truth, ranked) };
        all.push(rated(moments(truth, found.moments, threshold, options.answers)));
        own.push(rated(moments(truth, found.of_own, threshold, options.answers)));
        videos.push(list(truth, ranked_videos(found.videos)));
    }
    if options.among != Among::Split {
        return Predictions::any(all);
    }
    let tasks = [(Task::Vcmr, all), (Task::Svmr, own), (Task::Vr, videos)];
    let tasks = tasks.into_iter().map(|(task, queries)| TaskPredictions { task, queries }).collect();
    Predictions { tasks, rows: RowCounts::default(), extra: Extra::default() }
}

fn list(truth: &Truth, ranked: Vec<Prediction>) -> QueryPredictions {
    QueryPredictions { query: truth.query.id.clone(), ranked, saliency: None, extra: Extra::default() }
}

/// Best first, without those that overlap a better one of the same video by more than `threshold`.
fn moments(truth: &Truth, found: Best<FoundMoment>, threshold: f64, answers: usize) -> Vec<Prediction> {
    let mut kept: Vec<FoundMoment> = Vec::new();
    for found in found.into_ranked() {
        let clashes = |earlier: &FoundMoment| earlier.video == found.video && earlier.span.iou(found.span) > threshold;
        if kept.len() < answers && !kept.iter().any(clashes) {
            kept.push(found);
        }
    }
    let own = truth.video.as_ref().map(|video| &video.id);
    let whole = |span: Span| truth.duration().map_or(span, |duration| span.clip_to(duration));
    let prediction = |found: FoundMoment| {
        let span = if own == Some(&found.video) { whole(found.span) } else { found.span };
        Prediction { video: Some(found.video), span, score: Some(f64::from(found.score)) }
    };
    kept.into_iter().map(prediction).collect()
}

/// Whole videos; their spans say nothing.
fn ranked_videos(found: Best<(VideoId, f32)>) -> Vec<Prediction> {
    let mut ranked = found.into_ranked();
    // A later stretch of a video may have raised its score after it was put down.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let prediction = |(video, score): (VideoId, f32)| Prediction {
        video: Some(video),
        span: Span::whole(0.0),
        score: Some(f64::from(score)),
    };
    ranked.into_iter().map(prediction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_that_two_stretches_hold_has_the_mean_of_their_scores() {
        let mut truth = Truth::bare(cuemark_core::Query { id: "q".into(), text: "a dog".to_owned() });
        truth.video = Some(cuemark_core::Video { id: "v".into(), duration: Some(10.0) });
        let options = PredictOptions { answers: 1, batch: 1, among: Among::OwnVideo, window: None, variant: None };
        let mut found = Found::of(&truth, &options);
        assert_eq!(found.saliency(), None);
        found.rate_clips(&"v".into(), 0, &[1.0, 2.0, 3.0]);
        found.rate_clips(&"v".into(), 2, &[5.0, 7.0]);
        found.rate_clips(&"other".into(), 0, &[9.0; 9]);
        assert_eq!(found.saliency(), Some(vec![1.0, 2.0, 4.0, 7.0]));
    }

    #[test]
    fn the_best_are_kept_however_many_came_and_ties_keep_their_order() {
        let mut best = Best::new(3);
        for n in 0..100u32 {
            best.add(n, (n % 10) as f32);
        }
        assert_eq!(best.held.capacity().min(16), best.held.capacity());
        assert_eq!(best.into_ranked(), [9, 19, 29]);
    }
}
