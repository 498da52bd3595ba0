//! NDCG@K, IoU=m: ranked lists of graded moments.

use cuemark_core::{Span, VideoId};
use rustc_hash::FxHashMap;

use crate::Judge;

/// A span in a named video, with its grade.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradedSpan<'a> {
    /// The video.
    pub video: &'a VideoId,
    /// Where in it, in seconds.
    pub span: Span,
    /// How well it answers the query; 0 is not at all.
    pub relevance: f64,
}

/// NDCG@k, IoU=m of one query, 0 to 1; 0 when nothing in `truth` has a grade above 0.
///
/// Down the list, each prediction looks at the true moments of its video that are still free and takes the one that it
/// overlaps most (of equals, the one with the higher grade); if that overlap counts, its gain goes to the prediction's
/// rank and the moment is used up. A more relevant moment with less overlap is never preferred, and a moment of grade 0
/// can be used up too. The whole list is matched before it is cut at `k`. Gain and threshold are the judge's: the
/// paper's equation is linear and inclusive, the published code (and tables) exponential and strict.
///
/// ```
/// # use {cuemark_core::{Span, VideoId}, cuemark_metrics::{GradedSpan, Judge, ndcg_at}};
/// let (a, b) = (VideoId::from("a"), VideoId::from("b"));
/// let span = Span::new(0.0, 10.0).unwrap();
/// let truth = [GradedSpan { video: &a, span, relevance: 3.0 }, GradedSpan { video: &b, span, relevance: 1.0 }];
/// assert_eq!(ndcg_at(2, 0.5, &[(&a, span), (&b, span)], &truth, Judge::default()), 1.0);
/// let worse = ndcg_at(2, 0.5, &[(&b, span), (&a, span)], &truth, Judge::default());
/// assert!((worse - (1.0 + 3.0 / 3f64.log2()) / (3.0 + 1.0 / 3f64.log2())).abs() < 1e-15);
/// ```
pub fn ndcg_at(k: usize, m: f64, ranked: &[(&VideoId, Span)], truth: &[GradedSpan<'_>], judge: Judge) -> f64 {
    // Matching goes down the list, so what lies below `k` cannot change what lies above: cutting first is the same.
    Graded::new(ranked.iter().take(k).copied(), truth.iter().copied()).matched(m, judge).ndcg(k)
}

/// One query's list beside its true moments; serves every threshold.
pub(crate) struct Graded<'a> {
    /// In falling order of grade.
    moments: Vec<GradedSpan<'a>>,
    /// The moments of each video that has any, in the same order.
    by_video: Vec<Vec<usize>>,
    /// Each prediction with the place of its video in `by_video`.
    ranked: Vec<(Span, Option<usize>)>,
}

impl<'a> Graded<'a> {
    pub(crate) fn new(
        ranked: impl Iterator<Item = (&'a VideoId, Span)>,
        truth: impl Iterator<Item = GradedSpan<'a>>,
    ) -> Self {
        let mut moments: Vec<GradedSpan<'_>> = truth.collect();
        moments.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
        let mut places: FxHashMap<&VideoId, usize> = FxHashMap::default();
        let mut by_video: Vec<Vec<usize>> = Vec::new();
        for (position, moment) in moments.iter().enumerate() {
            let place = *places.entry(moment.video).or_insert_with(|| {
                by_video.push(Vec::new());
                by_video.len() - 1
            });
            by_video[place].push(position);
        }
        let ranked = ranked.map(|(video, span)| (span, places.get(video).copied())).collect();
        Self { moments, by_video, ranked }
    }

    /// What each prediction receives at threshold `m`.
    pub(crate) fn matched(&self, m: f64, judge: Judge) -> Matched {
        let mut used = vec![false; self.moments.len()];
        let received = self.ranked.iter().map(|(span, video)| {
            let Some(moments) = video.map(|video| &self.by_video[video]) else { return 0.0 };
            let free = moments.iter().filter(|position| !used[**position]);
            let overlaps = free.map(|position| (*position, judge.iou.of(*span, self.moments[*position].span)));
            // The first of equals stays, and moments are in falling order of grade.
            let best = overlaps.reduce(|best, next| if next.1 > best.1 { next } else { best });
            match best {
                Some((position, overlap)) if judge.passes(overlap, m) => {
                    used[position] = true;
                    judge.gain.of(self.moments[position].relevance)
                }
                _ => 0.0,
            }
        });
        let received = received.collect();
        Matched { received, ideal: self.moments.iter().map(|moment| judge.gain.of(moment.relevance)).collect() }
    }
}

/// What each prediction of a list receives at one threshold; serves every cut-off.
pub(crate) struct Matched {
    received: Vec<f64>,
    ideal: Vec<f64>,
}

impl Matched {
    /// NDCG of the first `k`.
    pub(crate) fn ndcg(&self, k: usize) -> f64 {
        let ideal = dcg(&self.ideal, k);
        if ideal > 0.0 { dcg(&self.received, k) / ideal } else { 0.0 }
    }
}

fn dcg(gains: &[f64], k: usize) -> f64 {
    gains.iter().take(k).enumerate().map(|(i, gain)| gain / (i as f64 + 2.0).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gain, Threshold};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn span(start: f64, end: f64) -> Span {
        Span::new(start, end).unwrap()
    }

    #[test]
    fn repeating_an_answer_earns_nothing_the_second_time() {
        let a = VideoId::from("a");
        let truth = [
            GradedSpan { video: &a, span: span(0.0, 10.0), relevance: 2.0 },
            GradedSpan { video: &a, span: span(50.0, 60.0), relevance: 2.0 },
        ];
        let twice = [(&a, span(0.0, 10.0)), (&a, span(0.0, 10.0))];
        let ideal = 2.0 + 2.0 / 3f64.log2();
        assert!((ndcg_at(2, 0.5, &twice, &truth, Judge::default()) - 2.0 / ideal).abs() < 1e-15);
    }

    #[test]
    fn a_query_without_relevant_moments_scores_zero() {
        let a = VideoId::from("a");
        let truth = [GradedSpan { video: &a, span: span(0.0, 10.0), relevance: 0.0 }];
        assert_eq!(ndcg_at(10, 0.5, &[(&a, span(0.0, 10.0))], &truth, Judge::default()), 0.0);
    }

    proptest! {
        #[test]
        fn it_lies_between_0_and_1(
            truth in vec((0usize..3, 0.0..50.0f64, 1.0..20.0f64, 0u8..5), 1..12),
            ranked in vec((0usize..3, 0.0..50.0f64, 1.0..20.0f64), 0..20),
            k in 1usize..20,
            exponential in any::<bool>(),
        ) {
            let videos = [VideoId::from("a"), VideoId::from("b"), VideoId::from("c")];
            let truth: Vec<_> = truth.iter().map(|(v, s, l, r)| GradedSpan {
                video: &videos[*v], span: span(*s, s + l), relevance: f64::from(*r),
            }).collect();
            let ranked: Vec<_> = ranked.iter().map(|(v, s, l)| (&videos[*v], span(*s, s + l))).collect();
            let gain = if exponential { Gain::Exponential } else { Gain::Linear };
            for threshold in [Threshold::Inclusive, Threshold::Strict] {
                let judge = Judge { gain, threshold, ..Judge::default() };
                let value = ndcg_at(k, 0.3, &ranked, &truth, judge);
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{}", value);
            }
        }
    }
}
