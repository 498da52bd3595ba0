//! dR@n, IoU=m: a hit counts less the further its ends are off.

use cuemark_core::Span;

use crate::Judge;

/// Which of several hits is discounted; the paper defines n = 1 only, where there is no choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhichHit {
    /// The one that lies best. Default, ours.
    #[default]
    Best,
    /// The one ranked first.
    First,
}

/// dR@n, IoU=m of one query: 0 without a hit among the first `n`, else `(1 - |Δstart|/duration)·(1 - |Δend|/duration)`.
///
/// Every true span that a prediction hits is considered. `duration` is the video's, in the unit of the spans.
/// From "A Closer Look at Temporal Sentence Grounding in Videos" (2021); its tables use `>=` on clipped truth.
///
/// ```
/// # use {cuemark_core::Span, cuemark_metrics::{Judge, WhichHit, discounted_recall_at}};
/// let (whole, truth) = (Span::new(0.0, 30.0).unwrap(), Span::new(5.0, 20.0).unwrap());
/// let score = discounted_recall_at(1, 0.5, &[whole], &[truth], 30.0, WhichHit::Best, Judge::default());
/// assert_eq!(score, (1.0 - 5.0 / 30.0) * (1.0 - 10.0 / 30.0));
/// ```
pub fn discounted_recall_at(
    n: usize,
    m: f64,
    ranked: &[Span],
    truth: &[Span],
    duration: f64,
    which: WhichHit,
    judge: Judge,
) -> f64 {
    let closeness = |predicted: f64, right: f64| 1.0 - ((predicted - right) / duration).abs();
    let alpha = |p: &Span| {
        let hits = truth.iter().filter(|t| judge.passes(judge.iou.of(*p, **t), m));
        let alphas = hits.map(|t| closeness(p.start(), t.start()) * closeness(p.end(), t.end()));
        alphas.reduce(f64::max)
    };
    let mut alphas = ranked.iter().take(n).filter_map(alpha);
    let chosen = match which {
        WhichHit::Best => alphas.reduce(f64::max),
        WhichHit::First => alphas.next(),
    };
    // A prediction that reaches past the video can be off by more than its duration; that is worth nothing, not less.
    chosen.unwrap_or(0.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall_at;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn span() -> impl Strategy<Value = Span> {
        (0.0..60.0f64, 0.0..30.0f64).prop_map(|(start, len)| Span::new(start, start + len).unwrap())
    }

    proptest! {
        #[test]
        fn it_never_exceeds_plain_recall(p in vec(span(), 1..8), t in span(), m in 0.05..1.0f64, n in 1usize..8) {
            let plain = f64::from(u8::from(recall_at(n, m, &p, &[t])));
            for which in [WhichHit::Best, WhichHit::First] {
                let discounted = discounted_recall_at(n, m, &p, &[t], 90.0, which, Judge::default());
                prop_assert!(discounted <= plain && discounted >= 0.0);
            }
        }

        #[test]
        fn an_exact_answer_is_not_discounted(t in span()) {
            prop_assume!(!t.is_empty());
            prop_assert_eq!(discounted_recall_at(1, 1.0, &[t], &[t], 90.0, WhichHit::Best, Judge::default()), 1.0);
        }
    }
}
