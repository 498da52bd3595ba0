//! mAP as QVHighlights defines it: average precision per query, at one threshold.

use cuemark_core::Iou;
use cuemark_core::Span;

/// Average precision of one ranked list at threshold `m` (inclusive).
///
/// Going down the list, each prediction takes the true span that it overlaps most and that is still free; below `m` it
/// is a false positive. Precision is made non-increasing from the right and summed over the steps of recall (all
/// points, as VOC since 2010; *not* the 101-point grid that "COCO-style" suggests). Overlap is [`Iou::True`]. Of true
/// spans with equal overlap the later one in the file is tried first, as the published code does. 0 when either list is empty.
///
/// ```
/// # use {cuemark_core::Span, cuemark_metrics::average_precision};
/// let at = |start, end| Span::new(start, end).unwrap();
/// // One of two true spans is found, first: precision 1 over half of the recall.
/// assert_eq!(average_precision(0.5, &[at(0.0, 4.0), at(50.0, 60.0)], &[at(0.0, 4.0), at(10.0, 14.0)]), 0.5);
/// ```
pub fn average_precision(m: f64, ranked: &[Span], truth: &[Span]) -> f64 {
    Overlaps::new(ranked, truth).average_precision(m)
}

/// Share of the true spans that the first `n` predictions find at threshold `m` (inclusive), each prediction one span at the
/// most: recall **per target**, for queries with several. Which span a prediction takes is as in [`average_precision`].
///
/// ```
/// # use {cuemark_core::Span, cuemark_metrics::target_recall_at};
/// let at = |start, end| Span::new(start, end).unwrap();
/// let truth = [at(0.0, 4.0), at(10.0, 14.0), at(20.0, 24.0)];
/// let ranked = [at(0.0, 4.0), at(0.0, 4.0), at(10.0, 14.0)];
/// assert_eq!(target_recall_at(1, 0.5, &ranked, &truth), 1.0 / 3.0);
/// assert_eq!(target_recall_at(5, 0.5, &ranked, &truth), 2.0 / 3.0); // the repeat finds nothing new
/// ```
pub fn target_recall_at(n: usize, m: f64, ranked: &[Span], truth: &[Span]) -> f64 {
    Overlaps::new(ranked, truth).target_recall(n, m)
}

/// Who overlaps whom, computed once for every threshold that is asked for.
pub(crate) struct Overlaps {
    /// For each prediction: the true spans by falling overlap.
    by_prediction: Vec<Vec<(usize, f64)>>,
    truths: usize,
}

impl Overlaps {
    pub(crate) fn new(ranked: &[Span], truth: &[Span]) -> Self {
        let order = |p: &Span| {
            let mut overlaps: Vec<(usize, f64)> = truth.iter().map(|t| Iou::True.of(*p, *t)).enumerate().collect();
            overlaps.sort_by(|a, b| a.1.total_cmp(&b.1)); // stable and ascending,
            overlaps.reverse(); // so that of equals the later comes first
            overlaps
        };
        Self { by_prediction: ranked.iter().map(order).collect(), truths: truth.len() }
    }

    pub(crate) fn target_recall(&self, n: usize, m: f64) -> f64 {
        if self.truths == 0 {
            return 0.0;
        }
        let mut taken = vec![false; self.truths];
        for overlaps in self.by_prediction.iter().take(n) {
            let free = overlaps.iter().take_while(|(_, overlap)| *overlap >= m).find(|(t, _)| !taken[*t]);
            if let Some((t, _)) = free {
                taken[*t] = true;
            }
        }
        taken.iter().filter(|taken| **taken).count() as f64 / self.truths as f64
    }

    pub(crate) fn average_precision(&self, m: f64) -> f64 {
        if self.truths == 0 || self.by_prediction.is_empty() {
            return 0.0;
        }
        let mut taken = vec![false; self.truths];
        let (mut found, mut points) = (0usize, Vec::with_capacity(self.by_prediction.len()));
        for (rank, overlaps) in self.by_prediction.iter().enumerate() {
            let free = overlaps.iter().take_while(|(_, overlap)| *overlap >= m).find(|(t, _)| !taken[*t]);
            if let Some((t, _)) = free {
                taken[*t] = true;
                found += 1;
            }
            points.push((found as f64 / self.truths as f64, found as f64 / (rank + 1) as f64));
        }
        interpolated_area(&points)
    }
}

/// Area under (recall, precision) points in rank order, precision made non-increasing from the right.
fn interpolated_area(points: &[(f64, f64)]) -> f64 {
    let mut envelope: Vec<f64> = points.iter().map(|(_, precision)| *precision).collect();
    for i in (1..envelope.len()).rev() {
        envelope[i - 1] = envelope[i - 1].max(envelope[i]);
    }
    let mut reached = 0.0;
    let mut area = 0.0;
    for ((recall, _), precision) in points.iter().zip(envelope) {
        area += (recall - reached) * precision;
        reached = *recall;
    }
    area
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn span() -> impl Strategy<Value = Span> {
        (0.0..60.0f64, 0.5..30.0f64).prop_map(|(start, len)| Span::new(start, start + len).unwrap())
    }

    #[test]
    fn a_false_positive_first_halves_the_precision() {
        let at = |start, end| Span::new(start, end).unwrap();
        assert_eq!(average_precision(0.5, &[at(90.0, 99.0), at(0.0, 4.0)], &[at(0.0, 4.0)]), 0.5);
    }

    #[test]
    fn one_true_span_is_found_once() {
        let at = |start, end| Span::new(start, end).unwrap();
        let twice = [at(0.0, 4.0), at(0.0, 4.0), at(10.0, 14.0)];
        // recall 1/2 at precision 1, then 1 at 2/3
        let expected = 0.5 + 0.5 * (2.0 / 3.0);
        assert!((average_precision(0.5, &twice, &[at(0.0, 4.0), at(10.0, 14.0)]) - expected).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn precision_is_a_fraction_and_perfect_lists_score_one(t in vec(span(), 1..6), p in vec(span(), 0..12)) {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&average_precision(0.5, &p, &t)));
            prop_assert!((average_precision(1.0, &t, &t) - 1.0).abs() < 1e-12);
        }
    }
}
