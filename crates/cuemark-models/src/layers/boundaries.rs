//! From a score per clip as start and as end to ranked spans, and from a span to the clips it begins and ends with.

use candle_core::{Result, Tensor};
use cuemark_core::NormSpan;

use crate::Proposal;

/// The most spans that are kept of one video.
const MOST: usize = 1000;

/// A span that begins with one clip and ends with another, inclusive, and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredClips {
    /// Index of the first clip.
    pub first: usize,
    /// Index of the last clip, not before the first.
    pub last: usize,
    /// Score of the first as a start times score of the last as an end.
    pub score: f32,
}

/// The 1000 best pairs of a start and an end not before it, best first; of equal ones the earlier start, then the earlier
/// end, comes first.
pub fn best_clips(starts: &[f32], ends: &[f32]) -> Vec<ScoredClips> {
    let pair = |first: usize, start: f32| {
        let score = move |(last, end): (usize, &f32)| ScoredClips { first, last, score: start * end };
        ends.iter().enumerate().skip(first).map(score)
    };
    let mut pairs: Vec<ScoredClips> =
        starts.iter().enumerate().flat_map(|(first, start)| pair(first, *start)).collect();
    let order = |a: &ScoredClips, b: &ScoredClips| {
        b.score.total_cmp(&a.score).then(a.first.cmp(&b.first)).then(a.last.cmp(&b.last))
    };
    if pairs.len() > MOST {
        pairs.select_nth_unstable_by(MOST, order);
        pairs.truncate(MOST);
    }
    pairs.sort_unstable_by(order);
    pairs
}

/// Ranked spans of every video, as fractions of its real clips.
///
/// # Shapes
/// - starts and ends `[queries, clips]`, of which `lengths` are real
///
/// # Errors
/// Those of the tensor operations.
pub fn rank_boundaries(starts: &Tensor, ends: &Tensor, lengths: &[usize]) -> Result<Vec<Vec<Proposal>>> {
    let rows = starts.to_vec2::<f32>()?.into_iter().zip(ends.to_vec2::<f32>()?).zip(lengths);
    let rank = |((mut starts, mut ends), length): ((Vec<f32>, Vec<f32>), &usize)| {
        starts.truncate(*length);
        ends.truncate(*length);
        let best = best_clips(&starts, &ends).into_iter();
        best.filter_map(|best| Some(Proposal { span: clip_span(best.first, best.last, *length)?, score: best.score }))
            .collect()
    };
    Ok(rows.map(rank).collect())
}

/// What clips `first..=last` of `clips` cover, as fractions. `None` of no clips.
pub fn clip_span(first: usize, last: usize, clips: usize) -> Option<NormSpan> {
    NormSpan::new(first as f64 / clips as f64, (last + 1) as f64 / clips as f64)
}

/// The first and last of `clips` clips whose stretch overlaps `span` best (intersection over union; the earliest of equals);
/// the nearest single clip when nothing overlaps.
pub fn nearest_clips(span: NormSpan, clips: usize) -> (usize, usize) {
    let last = clips.saturating_sub(1);
    let clip = |fraction: f64| ((fraction * clips as f64).floor().max(0.0) as usize).min(last);
    // The best stretch begins in the clip where the span does, or one after it, and ends likewise.
    let (start, end) = (clip(span.start()), clip(span.end()));
    let mut best = (0.0, (start, start));
    for first in start..=(start + 1).min(last) {
        for final_clip in end.saturating_sub(1).max(first)..=end.max(first) {
            let overlap = clip_span(first, final_clip, clips).map_or(0.0, |stretch| stretch.iou_hull(span));
            if overlap > best.0 + 1e-12 {
                best = (overlap, (first, final_clip));
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    #[test]
    fn an_end_before_its_start_is_never_proposed() {
        let best = best_clips(&[0.1, 0.9], &[0.8, 0.3]);
        let pairs: Vec<_> = best.iter().map(|best| (best.first, best.last)).collect();
        assert_eq!(pairs, [(1, 1), (0, 0), (0, 1)]);
    }

    #[test]
    fn long_videos_keep_their_best_thousand() {
        let scores: Vec<f32> = (0..100).map(|clip| 1.0 + clip as f32).collect();
        let best = best_clips(&scores, &scores);
        assert_eq!(best.len(), MOST);
        assert_eq!((best[0].first, best[0].last), (99, 99));
        assert!(best.is_sorted_by(|a, b| a.score >= b.score));
    }

    #[test]
    fn a_span_between_clips_goes_to_those_it_overlaps_best_and_one_past_the_end_to_the_last() {
        let of_four = |start: f64, end: f64| nearest_clips(NormSpan::new(start, end).unwrap(), 4);
        assert_eq!([of_four(0.24, 0.51), of_four(0.2, 0.7), of_four(1.2, 1.3)], [(1, 1), (1, 2), (3, 3)]);
    }

    #[test]
    fn the_nearest_clips_are_those_of_a_search_over_all_pairs() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let clips = 1 + rng.below(12);
            let span = NormSpan::new(rng.uniform(), rng.uniform()).unwrap();
            let iou = |(first, last): (usize, usize)| clip_span(first, last, clips).unwrap().iou_hull(span);
            let all = (0..clips).flat_map(|first| (first..clips).map(move |last| (first, last)));
            let best = all.map(iou).fold(0.0, f64::max);
            assert!((iou(nearest_clips(span, clips)) - best).abs() < 1e-9, "{span:?} of {clips}");
        }
    }
}
