//! R@n, IoU=m: is a right span among the first n?

use cuemark_core::Span;

use crate::Judge;

/// R@k, IoU=m: whether one of the `k` best-ranked spans overlaps the truth enough.
///
/// `ranked` is best first. The threshold is inclusive (`iou >= m`), as in the QVHighlights and TVR evaluators;
/// 2D-TAN's own script uses `>`, which only differs on exact ties ([`hit_within`] takes either). With several true
/// spans the best one counts. No prediction is a miss.
///
/// ```
/// # use {cuemark_core::Span, cuemark_metrics::recall_at};
/// let ranked = [Span::new(0.0, 4.0).unwrap(), Span::new(10.0, 20.0).unwrap()];
/// let truth = [Span::new(12.0, 20.0).unwrap()];
/// assert!(!recall_at(1, 0.5, &ranked, &truth));
/// assert!(recall_at(5, 0.5, &ranked, &truth)); // k may exceed ranked.len()
/// ```
pub fn recall_at(k: usize, m: f64, ranked: &[Span], truth: &[Span]) -> bool {
    let best = |span: &Span| truth.iter().map(|right| span.iou(*right)).fold(0.0, f64::max);
    let overlaps: Vec<f64> = ranked.iter().take(k).map(best).collect();
    !truth.is_empty() && hit_within(k, m, &overlaps, Judge::default())
}

/// Whether one of the first `k` overlaps, given in rank order, counts at threshold `m`.
pub fn hit_within(k: usize, m: f64, overlaps: &[f64], judge: Judge) -> bool {
    overlaps.iter().take(k).any(|overlap| judge.passes(*overlap, m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threshold;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn span() -> impl Strategy<Value = Span> {
        (0.0..60.0f64, 0.0..30.0f64).prop_map(|(start, len)| Span::new(start, start + len).unwrap())
    }

    #[test]
    fn a_tie_with_the_threshold_counts_unless_strict() {
        let strict = Judge { threshold: Threshold::Strict, ..Judge::default() };
        assert!(hit_within(1, 0.5, &[0.5], Judge::default()));
        assert!(!hit_within(1, 0.5, &[0.5], strict));
    }

    #[test]
    fn nothing_predicted_is_a_miss_and_so_is_nothing_to_find() {
        let span = Span::new(0.0, 1.0).unwrap();
        assert!(!recall_at(5, 0.0, &[], &[span]));
        assert!(!recall_at(5, 0.0, &[span], &[]));
    }

    proptest! {
        #[test]
        fn recall_never_falls_as_k_grows(p in vec(span(), 1..20), t in span(), m in 0.05..1.0f64) {
            for k in 1..p.len() {
                prop_assert!(recall_at(k, m, &p, &[t]) <= recall_at(k + 1, m, &p, &[t]));
            }
        }

        #[test]
        fn recall_never_rises_as_the_threshold_does(p in vec(span(), 1..20), t in span(), m in 0.05..0.9f64) {
            prop_assert!(recall_at(5, m, &p, &[t]) >= recall_at(5, m + 0.1, &p, &[t]));
        }

        #[test]
        fn the_order_of_true_spans_does_not_matter(p in vec(span(), 1..6), t in vec(span(), 1..6)) {
            let mut reversed = t.clone();
            reversed.reverse();
            prop_assert_eq!(recall_at(3, 0.4, &p, &t), recall_at(3, 0.4, &p, &reversed));
        }
    }
}
