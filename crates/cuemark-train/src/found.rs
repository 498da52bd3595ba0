//! What was found for a query, kept within bounds, and the lists that are made of it.

use cuemark_core::{Extra, Prediction, Predictions, QueryPredictions, Span, Task, TaskPredictions, Truth, VideoId};
use cuemark_models::Proposal;

use crate::footage::Clips;
use crate::predict::{Among, PredictOptions};

/// Moments held per answer that is wanted: stretches of one video overlap, so some of them will be dropped.
const SPARE: usize = 8;

/// *Best of overlapping stretches*: where a video was shown in stretches, of two answers that overlap by more than this the one with the
/// lower score is dropped, whichever stretch it came from (NMS); the model's own threshold counts where it is lower.
const MERGED_OVERLAP: f64 = 0.7;

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
    /// **Seconds** of such a clip.
    clip_seconds: f64,
    /// Whether a video was shown in several stretches.
    in_stretches: bool,
}

impl Found {
    pub(crate) fn of(truth: &Truth, options: &PredictOptions) -> Self {
        let own = truth.video.as_ref().map(|video| &video.id);
        let own = own.or_else(|| truth.right().next().map(|moment| &moment.video));
        let moments = || Best::new(options.answers.saturating_mul(SPARE));
        let videos = Best::new(options.answers.max(VIDEOS));
        Self {
            own: own.cloned(),
            moments: moments(),
            of_own: moments(),
            videos,
            clips: Vec::new(),
            clip_seconds: 0.0,
            in_stretches: false,
        }
    }

    /// A video that is too long for the model is shown to it in several stretches.
    pub(crate) fn note_stretches(&mut self) {
        self.in_stretches = true;
    }

    /// The clips from `first` on, of so many seconds each, have these scores. A clip that several stretches of a long video hold
    /// gets their mean.
    pub(crate) fn rate_clips(&mut self, video: &VideoId, first: usize, seconds: f64, scores: &[f32]) {
        if self.own.as_ref() != Some(video) {
            return;
        }
        self.clip_seconds = seconds;
        if self.clips.len() < first + scores.len() {
            self.clips.resize(first + scores.len(), (0.0, 0));
        }
        for ((sum, count), score) in self.clips[first..].iter_mut().zip(scores) {
            *sum += f64::from(*score);
            *count += 1;
        }
    }

    /// One score per clip that people rated, or per clip of the features where nobody did; `None` when nothing scored clips.
    fn saliency(&self, truth: &Truth) -> Option<Vec<f64>> {
        let mean = |(sum, count): &(f64, usize)| sum / (*count).max(1) as f64;
        let scores: Vec<f64> = self.clips.iter().map(mean).collect();
        let rated = truth.highlights.as_ref().map_or(self.clip_seconds, |rated| rated.clip_len.seconds());
        if scores.is_empty() || (rated - self.clip_seconds).abs() < 1e-9 {
            return (!scores.is_empty()).then_some(scores);
        }
        let seconds = truth.duration().unwrap_or(scores.len() as f64 * self.clip_seconds);
        Some(of_rated_clips(&scores, self.clip_seconds, rated, (seconds / rated) as usize))
    }

    /// Whether a moment of that video and score, or one that is worse, could still be listed.
    pub(crate) fn has_room(&self, video: &VideoId, score: f32) -> bool {
        self.own.as_ref() == Some(video) || self.moments.has_room(score)
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

/// Scores of clips of `own` seconds brought to `count` clips of `rated` seconds: each has the mean of those whose middle lies in it,
/// or, where clips are longer than that, the score of the one that holds its own middle.
fn of_rated_clips(scores: &[f64], own: f64, rated: f64, count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0usize); count];
    for (place, score) in scores.iter().enumerate() {
        let clip = ((place as f64 + 0.5) * own / rated) as usize;
        if let Some((sum, seen)) = sums.get_mut(clip) {
            *sum += score;
            *seen += 1;
        }
    }
    let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let holding = |clip: usize| scores.get(((clip as f64 + 0.5) * rated / own) as usize).copied();
    let score = |(clip, (sum, seen)): (usize, (f64, usize))| match seen {
        // A clip that the features do not reach is the last choice: 0 might be the best.
        0 => holding(clip).unwrap_or(lowest),
        _ => sum / seen as f64,
    };
    sums.into_iter().enumerate().map(score).collect()
}

/// The best of many, in bounded memory. Equal scores keep the order in which they came.
#[derive(Debug)]
struct Best<T> {
    limit: usize,
    held: Vec<(T, f32)>,
    /// The score of the last that can stay, once there were so many.
    floor: Option<f32>,
}

impl<T> Best<T> {
    fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), held: Vec::new(), floor: None }
    }

    /// Whether something of that score could stay. Of equals the first stays, so one that is as good as the last is too late.
    fn has_room(&self, score: f32) -> bool {
        self.floor.is_none_or(|floor| score.total_cmp(&floor).is_gt())
    }

    fn add(&mut self, item: T, score: f32) {
        if !self.has_room(score) {
            return;
        }
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
        self.floor = self.held.get(self.limit - 1).map(|(_, score)| *score);
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
        let saliency = found.saliency(truth);
        // What a video that was seen whole gave has been through suppression already, counted in clips where the model does.
        let threshold = if found.in_stretches { threshold.min(MERGED_OVERLAP) } else { 1.0 };
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
    Predictions { tasks, ..Predictions::default() }
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
    use cuemark_features::FeatureVariant;

    use super::*;

    #[test]
    fn a_clip_that_two_stretches_hold_has_the_mean_of_their_scores() {
        let mut truth = Truth::bare(cuemark_core::Query { id: "q".into(), text: "a dog".to_owned() });
        truth.video = Some(cuemark_core::Video { id: "v".into(), duration: Some(10.0) });
        let options =
            PredictOptions { answers: 1, batch: 1, among: Among::Own, window: None, variant: FeatureVariant::Seen };
        let mut found = Found::of(&truth, &options);
        assert_eq!(found.saliency(&truth), None);
        found.rate_clips(&"v".into(), 0, 2.0, &[1.0, 2.0, 3.0]);
        found.rate_clips(&"v".into(), 2, 2.0, &[5.0, 7.0]);
        found.rate_clips(&"other".into(), 0, 2.0, &[9.0; 9]);
        assert_eq!(found.saliency(&truth), Some(vec![1.0, 2.0, 4.0, 7.0]));
        // People rated stretches of four seconds: two whole ones in ten.
        let clip_len = cuemark_core::ClipLen::new(4.0).unwrap();
        truth.highlights = Some(Box::new(cuemark_core::Highlights { clip_len, clips: vec![], ratings: vec![] }));
        assert_eq!(found.saliency(&truth), Some(vec![1.5, 5.5]));
    }

    /// The same moment seen in two stretches, and once more shifted by a tenth: one answer; in one stretch all three stay.
    #[test]
    fn answers_of_overlapping_stretches_are_merged_by_score() {
        let mut truth = Truth::bare(cuemark_core::Query { id: "q".into(), text: "a dog".to_owned() });
        truth.video = Some(cuemark_core::Video { id: "v".into(), duration: Some(1000.0) });
        let options =
            PredictOptions { answers: 5, batch: 1, among: Among::Own, window: None, variant: FeatureVariant::Seen };
        let kept = |in_stretches: bool| {
            let mut found = Found::of(&truth, &options);
            if in_stretches {
                found.note_stretches();
            }
            for (start, end, score) in
                [(100.0, 120.0, 0.6), (100.0, 120.0, 0.9), (102.0, 122.0, 0.8), (300.0, 310.0, 0.5)]
            {
                let span = Span::new(start, end).unwrap();
                found.add(FoundMoment { video: "v".into(), span, score });
            }
            let list = predictions(std::slice::from_ref(&truth), vec![found], 0.7, &options);
            list.tasks[0].queries[0].ranked.iter().map(|answer| answer.span.start()).collect::<Vec<_>>()
        };
        assert_eq!(kept(true), [100.0, 300.0]);
        assert_eq!(kept(false), [100.0, 102.0, 100.0, 300.0]);
    }

    #[test]
    fn clip_scores_reach_rated_clips_of_any_length() {
        assert_eq!(of_rated_clips(&[1.0, 3.0, 5.0, 7.0, 9.0], 1.0, 2.0, 2), [2.0, 6.0]);
        assert_eq!(of_rated_clips(&[1.0, 3.0], 4.0, 2.0, 4), [1.0, 1.0, 3.0, 3.0]);
        // Nothing is known of the last clip.
        assert_eq!(of_rated_clips(&[-1.0, -3.0], 2.0, 1.0, 6)[4..], [-3.0, -3.0]);
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
