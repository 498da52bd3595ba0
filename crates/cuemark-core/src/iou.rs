//! Temporal intersection over union in every form that a published evaluator uses.

use crate::{ChunkRange, Span};

/// How the overlap of two spans is measured.
///
/// On overlapping spans all forms but the last two agree, up to the last bit; they differ on degenerate and
/// disjoint ones, and at exact ties with a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Iou {
    /// Intersection over the summed lengths less the intersection; 0 when both spans are empty. Default.
    #[default]
    True,
    /// Intersection over the hull (from the earlier start to the later end); 0 when the hull is empty.
    Hull,
    /// `Hull` in single precision, as TVR's evaluator computes it.
    HullSingle,
    /// `(intersection + 1e-10) / (hull + 1e-10)`, negative values 0: MoLEF. Two equal points give 1.
    HullEps,
    /// Intersection over the smaller of hull and summed lengths, 1e-8 added: WSDEC.
    MinUnion,
    /// `Hull` with the intersection not cut at 0, so disjoint spans are negative: TALL and TSP-PRL rewards.
    Signed,
}

impl Iou {
    /// The overlap of `a` and `b`.
    ///
    /// ```
    /// use cuemark_core::{Iou, Span};
    /// let (a, b) = (Span::new(0.0, 1.0).unwrap(), Span::new(5.0, 6.0).unwrap());
    /// assert_eq!(Iou::True.of(a, b), 0.0);
    /// assert_eq!(Iou::Signed.of(a, b), -4.0 / 6.0);
    /// ```
    pub fn of(self, a: Span, b: Span) -> f64 {
        let inter = a.end().min(b.end()) - a.start().max(b.start());
        let hull = a.end().max(b.end()) - a.start().min(b.start());
        let lengths = a.len() + b.len();
        match self {
            Self::True => ratio(inter.max(0.0), lengths - inter.max(0.0)),
            Self::Hull => ratio(inter.max(0.0), hull),
            Self::HullSingle => f64::from(hull_single(a, b)),
            Self::HullEps => ((inter + 1e-10) / (hull + 1e-10)).max(0.0),
            Self::MinUnion => inter.max(0.0) / (hull.min(lengths) + 1e-8),
            Self::Signed => ratio(inter, hull),
        }
    }

    /// `threshold` in the precision this form compares in.
    pub fn threshold(self, threshold: f64) -> f64 {
        match self {
            Self::HullSingle => f64::from(threshold as f32),
            _ => threshold,
        }
    }
}

fn ratio(inter: f64, union: f64) -> f64 {
    if union > 0.0 { inter / union } else { 0.0 }
}

fn hull_single(a: Span, b: Span) -> f32 {
    let (a_start, a_end) = (a.start() as f32, a.end() as f32);
    let (b_start, b_end) = (b.start() as f32, b.end() as f32);
    let inter = (a_end.min(b_end) - a_start.max(b_start)).max(0.0);
    let hull = a_end.max(b_end) - a_start.min(b_start);
    if hull > 0.0 { inter / hull } else { 0.0 }
}

/// Overlap of two chunk ranges counted in chunks, both ends inside, as DiDeMo's evaluator does; never 0 over 0.
///
/// ```
/// use cuemark_core::{ChunkRange, iou_chunks};
/// let (a, b) = (ChunkRange::new(0, 2).unwrap(), ChunkRange::new(2, 3).unwrap());
/// assert_eq!(iou_chunks(a, b), 1.0 / 4.0);
/// ```
pub fn iou_chunks(a: ChunkRange, b: ChunkRange) -> f64 {
    let inter = f64::from(a.last().min(b.last())) + 1.0 - f64::from(a.first().max(b.first()));
    let hull = f64::from(a.last().max(b.last())) + 1.0 - f64::from(a.first().min(b.first()));
    inter.max(0.0) / hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: f64, end: f64) -> Span {
        Span::new(start, end).unwrap()
    }

    #[test]
    fn degenerate_spans_overlap_as_each_form_says() {
        let point = span(3.0, 3.0);
        assert_eq!(Iou::True.of(point, point), 0.0);
        assert_eq!(Iou::Hull.of(point, point), 0.0);
        assert_eq!(Iou::HullEps.of(point, point), 1.0);
        let (left, right) = (span(0.0, 5.0), span(5.0, 10.0));
        assert_eq!(Iou::True.of(left, right), 0.0);
        assert!((Iou::HullEps.of(left, right) - 1e-11).abs() < 1e-20);
    }

    #[test]
    fn single_precision_decides_ties_as_single_precision_does() {
        // 0.7 is not a binary fraction: in double precision 7/10 and 0.7 are the same number, and so in single.
        let (a, b) = (span(0.0, 10.0), span(0.0, 7.0));
        assert!(Iou::HullSingle.of(a, b) >= Iou::HullSingle.threshold(0.7));
        assert!(Iou::HullSingle.of(a, b) < 0.7, "in double precision the single value lies below");
    }

    prop_compose! {
        fn any_span()(start in 0.0..100.0f64, len in 0.0..50.0f64) -> Span { span(start, start + len) }
    }

    proptest! {
        #[test]
        fn iou_is_symmetric_and_in_the_unit_interval(a in any_span(), b in any_span()) {
            for form in [Iou::True, Iou::Hull, Iou::HullSingle, Iou::HullEps, Iou::MinUnion] {
                let value = form.of(a, b);
                prop_assert!((0.0..=1.0 + 1e-9).contains(&value), "{form:?}: {value}");
                prop_assert_eq!(value, form.of(b, a));
            }
        }

        #[test]
        fn true_and_hull_forms_agree_up_to_rounding(a in any_span(), b in any_span()) {
            prop_assert!((Iou::True.of(a, b) - Iou::Hull.of(a, b)).abs() < 1e-12);
        }
    }
}
