//! Answers that show the same moment, merged into the best of them.

use cuemark_core::{Span, VideoId};
use rustc_hash::FxHashMap;

/// The share of a video's moments, the shortest first, behind which one as long as a clip is sure to be: the last clip may be
/// cut short, and a ninth or more of the moments are single clips.
const SHORTEST: usize = 20;

/// Positions in a ranked list, best first, of at most `limit` answers that are moments of their own.
///
/// Greedy non-maximum suppression: an answer goes when it overlaps a better one of its video by more than `threshold` (IoU), or
/// when the two overlap at all and neither end differs by more than a clip. Short answers need the second rule: a moment of two
/// clips and the same with one more beside it have an IoU of two thirds, but one clip and two have just a half, and a shift by
/// one of two clips a third. With a `threshold` of 1 nothing is merged.
pub(crate) fn distinct(ranked: &[(&VideoId, Span)], threshold: f64, limit: usize) -> Vec<usize> {
    let clips = clips(ranked);
    let mut kept: Vec<usize> = Vec::new();
    let mut of_video: FxHashMap<&VideoId, Vec<Span>> = FxHashMap::default();
    for (place, (video, span)) in ranked.iter().enumerate() {
        if kept.len() >= limit {
            break;
        }
        let clip = clips.get(video).copied().unwrap_or(0.0);
        let better = of_video.entry(video).or_default();
        if !better.iter().any(|better| are_one(*better, *span, threshold, clip)) {
            better.push(*span);
            kept.push(place);
        }
    }
    kept
}

fn are_one(a: Span, b: Span, threshold: f64, clip: f64) -> bool {
    let overlap = a.iou(b);
    let beside = |a: f64, b: f64| (a - b).abs() <= clip * (1.0 + 1e-6);
    let near = threshold < 1.0 && overlap > 0.0 && beside(a.start(), b.start()) && beside(a.end(), b.end());
    overlap > threshold || near
}

/// Seconds of a clip of each video, by its shortest moments.
fn clips<'a>(ranked: &[(&'a VideoId, Span)]) -> FxHashMap<&'a VideoId, f64> {
    let mut lengths: FxHashMap<&VideoId, Vec<f64>> = FxHashMap::default();
    for (video, span) in ranked {
        lengths.entry(video).or_default().push(span.len());
    }
    let shortest = |mut lengths: Vec<f64>| {
        let place = lengths.len() / SHORTEST;
        // There is one for each that was counted.
        *lengths.select_nth_unstable_by(place, f64::total_cmp).1
    };
    lengths.into_iter().map(|(video, lengths)| (video, shortest(lengths))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every moment of `clips` clips of two seconds, the best one first, by how far their ends lie from those of the best.
    fn map(clips: usize, best: (usize, usize)) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> =
            (0..clips).flat_map(|start| (start + 1..=clips).map(move |end| (start, end))).collect();
        all.sort_by_key(|(start, end)| (start.abs_diff(best.0) + end.abs_diff(best.1), *start, *end));
        all
    }

    fn kept(spans: &[(usize, usize)], threshold: f64, limit: usize) -> Vec<(usize, usize)> {
        let video = VideoId::from("v");
        let span = |(start, end): &(usize, usize)| Span::new(2.0 * *start as f64, 2.0 * *end as f64).unwrap();
        let ranked: Vec<(&VideoId, Span)> = spans.iter().map(|one| (&video, span(one))).collect();
        distinct(&ranked, threshold, limit).into_iter().map(|place| spans[place]).collect()
    }

    #[test]
    fn no_two_answers_differ_by_a_clip() {
        for best in [(3, 4), (3, 5), (0, 1), (6, 9)] {
            let answers = kept(&map(16, best), 0.5, 10);
            assert_eq!(answers[0], best);
            for (place, a) in answers.iter().enumerate() {
                for b in &answers[..place] {
                    let apart = a.0 >= b.1 || b.0 >= a.1;
                    assert!(apart || a.0.abs_diff(b.0) > 1 || a.1.abs_diff(b.1) > 1, "{a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn clips_beside_each_other_are_moments_of_their_own() {
        let mut spans = map(16, (3, 4));
        spans.retain(|span| *span != (4, 5));
        spans.insert(1, (4, 5));
        assert_eq!(kept(&spans, 0.5, 2), [(3, 4), (4, 5)]);
    }

    #[test]
    fn the_list_is_cut_after_merging_and_a_threshold_of_one_merges_nothing() {
        let spans = map(16, (3, 5));
        assert_eq!(kept(&spans, 0.5, 4).len(), 4);
        assert_eq!(kept(&spans, 1.0, 4), &spans[..4]);
        assert!(kept(&spans, 0.5, 0).is_empty());
        assert!(kept(&[], 0.5, 4).is_empty());
    }

    #[test]
    fn the_same_span_of_two_videos_is_two_answers_and_a_short_last_clip_does_not_hide_what_a_clip_is() {
        let (a, b) = (VideoId::from("a"), VideoId::from("b"));
        let span = |start: f64, end: f64| Span::new(start, end).unwrap();
        let mut ranked = vec![(&a, span(0.0, 2.0)), (&b, span(0.0, 2.0)), (&a, span(0.0, 4.0)), (&a, span(30.0, 30.1))];
        ranked.extend((1..30).map(|clip| (&a, span(f64::from(clip), f64::from(clip) + 2.0))));
        let kept = distinct(&ranked, 0.5, 3);
        assert_eq!(kept[..2], [0, 1]);
        assert_ne!(kept[2], 2);
    }
}
