//! mIoU: how far the first answer overlaps.

/// Overlap of the first prediction, given every prediction's overlap in rank order; 0 without one.
///
/// mIoU is its mean over queries.
///
/// ```
/// # use cuemark_metrics::top_iou;
/// assert_eq!(top_iou(&[0.4, 0.9]), 0.4);
/// assert_eq!(top_iou(&[]), 0.0);
/// ```
pub fn top_iou(overlaps: &[f64]) -> f64 {
    overlaps.first().copied().unwrap_or(0.0)
}
