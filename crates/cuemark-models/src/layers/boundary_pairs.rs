//! From a probability per clip of being the start and of being the end to ranked spans (XML, ReLoCLNet, CONQUER).

use candle_core::{Device, Tensor};
use cuemark_core::NormSpan;
use serde::{Deserialize, Serialize};

use crate::Proposal;

/// How many clips may lie between the start and the end clip of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairLimits {
    /// The least `end - start`; videos that are too short for it are taken whole.
    pub min: usize,
    /// The largest `end - start`.
    pub max: usize,
}

impl PairLimits {
    /// The pairs of a start and an end clip that are allowed among `clips` clips, by start, then by end.
    pub fn pairs(self, clips: usize) -> impl Iterator<Item = (usize, usize)> {
        let min = self.min.min(clips.saturating_sub(1));
        (0..clips)
            .flat_map(move |start| (start + min..clips.min(start + self.max.max(min) + 1)).map(move |end| (start, end)))
    }

    /// 1 at allowed pairs, `[clips, clips]`, starts by ends.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn square(self, clips: usize) -> candle_core::Result<Tensor> {
        let mut allowed = vec![0f32; clips * clips];
        self.pairs(clips).for_each(|(start, end)| allowed[start * clips + end] = 1.0);
        Tensor::from_vec(allowed, (clips, clips), &Device::Cpu)
    }
}

/// What the number of an end clip stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndClip {
    /// The last clip of the moment.
    Last,
    /// The clip after the moment, but never past the last clip of the video (ReLoCLNet).
    After,
    /// The clip after the moment when learning and the last one when answering, so that answers end up to a clip late
    /// (XML as published).
    AfterThenLast,
}

impl EndClip {
    /// The start and end clip of a span among `clips` clips.
    pub fn label(self, span: NormSpan, clips: usize) -> (usize, usize) {
        let last = clips.saturating_sub(1);
        let span = span.clipped();
        // A hundred-thousandth of a clip makes up for bounds that were divided and multiplied again.
        let start = ((span.start() * clips as f64 + 1e-5).floor() as usize).min(last);
        let after = (span.end() * clips as f64 - 1e-5).ceil().max(0.0) as usize;
        let end = if self == Self::Last { after.saturating_sub(1) } else { after };
        (start, end.clamp(start, last))
    }

    /// The span that an answer means among `clips` clips.
    pub fn span(self, start: usize, end: usize, clips: usize) -> Option<NormSpan> {
        let end = if self == Self::After { end } else { end + 1 };
        NormSpan::new(start as f64 / clips as f64, end as f64 / clips as f64)
    }
}

/// An allowed pair with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundaryPair {
    /// The start clip.
    pub start: usize,
    /// The end clip.
    pub end: usize,
    /// Larger is better.
    pub score: f32,
}

/// The `keep` best allowed pairs by `score(start, end)`, best first; equal scores keep the order of
/// [`PairLimits::pairs`].
pub fn best_pairs(
    limits: PairLimits,
    clips: usize,
    keep: usize,
    score: impl Fn(usize, usize) -> f32,
) -> Vec<BoundaryPair> {
    let pair = |(start, end)| BoundaryPair { start, end, score: score(start, end) };
    let mut pairs: Vec<BoundaryPair> = limits.pairs(clips).map(pair).collect();
    // Pairs come by start, then end: so compared, ties keep their order whichever way they are sorted.
    let in_order =
        |a: &BoundaryPair, b: &BoundaryPair| b.score.total_cmp(&a.score).then((a.start, a.end).cmp(&(b.start, b.end)));
    // A search over thousands of videos keeps a part of each: what is not kept need not be sorted.
    if pairs.len() > keep {
        pairs.select_nth_unstable_by(keep, in_order);
        pairs.truncate(keep);
    }
    pairs.sort_unstable_by(in_order);
    pairs
}

/// Pairs as spans of a video of `clips` clips.
pub fn as_proposals(pairs: &[BoundaryPair], ends: EndClip, clips: usize) -> Vec<Proposal> {
    let proposal =
        |pair: &BoundaryPair| Some(Proposal { span: ends.span(pair.start, pair.end, clips)?, score: pair.score });
    pairs.iter().filter_map(proposal).collect()
}

/// Logits as probabilities that sum to 1.
pub fn probabilities(logits: &[f32]) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let total: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_to_their_limits_and_short_videos_have_one() {
        let limits = PairLimits { min: 2, max: 3 };
        assert_eq!(limits.pairs(5).collect::<Vec<_>>(), [(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]);
        assert_eq!(limits.pairs(2).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(limits.pairs(1).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(limits.pairs(0).count(), 0);
    }

    #[test]
    fn a_label_read_back_is_the_span_where_the_rule_allows_it() {
        // Clips 2, 3 and 4 of ten.
        let span = NormSpan::new(0.2, 0.5).unwrap();
        for (ends, label, back) in [
            (EndClip::Last, (2, 4), (0.2, 0.5)),
            (EndClip::After, (2, 5), (0.2, 0.5)),
            (EndClip::AfterThenLast, (2, 5), (0.2, 0.6)),
        ] {
            assert_eq!(ends.label(span, 10), label);
            let read = ends.span(label.0, label.1, 10).unwrap();
            assert!((read.start() - back.0).abs() < 1e-9 && (read.end() - back.1).abs() < 1e-9, "{ends:?}");
        }
    }

    #[test]
    fn labels_stay_inside_the_video() {
        let past = NormSpan::new(0.95, 1.4).unwrap();
        assert_eq!(EndClip::Last.label(past, 4), (3, 3));
        assert_eq!(EndClip::After.label(past, 4), (3, 3));
        let empty = NormSpan::new(0.5, 0.5).unwrap();
        assert_eq!(EndClip::Last.label(empty, 4), (2, 2));
    }

    #[test]
    fn best_pairs_come_first_and_ties_keep_their_order() {
        let limits = PairLimits { min: 0, max: 1 };
        let best = best_pairs(limits, 3, 3, |start, end| if (start, end) == (1, 2) { 2.0 } else { 1.0 });
        let order: Vec<_> = best.iter().map(|pair| (pair.start, pair.end)).collect();
        assert_eq!(order, [(1, 2), (0, 0), (0, 1)]);
    }
}
