//! Which candidates are right, and what training makes smaller.

use candle_core::Tensor;
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softplus;

use super::{Between, Tgn};
use crate::{Batch, Result};

/// The largest weight of a positive that a batch can ask for.
const MAX_WEIGHT: f32 = 100.0;

/// The clips of a batch that are read in one pass: all of them, or a stretch of each.
pub(super) struct Stretch {
    pub(super) visual: Tensor,
    /// Real clips of each.
    pub(super) lengths: Vec<usize>,
    /// The true spans in clips of the stretch.
    pub(super) spans: Vec<(f64, f64)>,
}

/// What every candidate should score: `[batch, clips, anchors]` each, 0 or 1.
pub(super) struct Labels {
    pub(super) positive: Tensor,
    pub(super) counted: Tensor,
}

impl Tgn {
    /// A random stretch of every video that is longer than the window.
    pub(super) fn stretch(&self, batch: &Batch, spans: &[NormSpan], pass: &Pass) -> Result<Stretch> {
        let (pairs, clips, width) = batch.videos.visual.dims3()?;
        let window = self.config.window.min(clips);
        let firsts: Vec<usize> = batch
            .videos
            .lengths
            .iter()
            .map(|length| pass.draw(|rng| rng.below(length.saturating_sub(window) + 1)).unwrap_or(0))
            .collect();
        let visual = if window == clips {
            batch.videos.visual.clone()
        } else {
            let rows = firsts.iter().enumerate();
            let rows = rows.flat_map(|(pair, first)| (0..window).map(move |row| (pair * clips + first + row) as u32));
            let rows = Tensor::new(rows.collect::<Vec<u32>>(), batch.videos.visual.device())?;
            let all = batch.videos.visual.reshape((pairs * clips, width))?;
            all.index_select(&rows, 0)?.reshape((pairs, window, width))?
        };
        let lengths: Vec<usize> = batch.videos.lengths.iter().map(|length| (*length).min(window)).collect();
        let inside = |(pair, span): (usize, &NormSpan)| {
            let (first, real) = (firsts[pair] as f64, lengths[pair] as f64);
            let at = |fraction: f64| (fraction * batch.videos.lengths[pair] as f64 - first).clamp(0.0, real);
            (at(span.start()), at(span.end()))
        };
        Ok(Stretch { spans: spans.iter().enumerate().map(inside).collect(), visual, lengths })
    }

    pub(super) fn labels(&self, stretch: &Stretch) -> Result<Labels> {
        let (pairs, clips, _) = stretch.visual.dims3()?;
        let device = stretch.visual.device();
        let (mut positive, mut counted) = (Vec::new(), Vec::new());
        for (span, length) in stretch.spans.iter().zip(&stretch.lengths) {
            for clip in 0..clips {
                for anchor in &self.anchors {
                    let overlap = overlap_nearby(*span, clip, *anchor);
                    let above = overlap.is_some_and(|iou| iou > self.config.positive_iou);
                    let below = overlap.is_none_or(|iou| iou < self.config.negative_iou);
                    let real = clip < *length;
                    positive.push(f32::from(u8::from(above && real)));
                    counted.push(f32::from(u8::from(above || below || self.config.between == Between::Negative)));
                }
            }
        }
        let shape = (pairs, clips, self.anchors.len());
        Ok(Labels {
            positive: Tensor::from_vec(positive, shape, device)?,
            counted: Tensor::from_vec(counted, shape, device)?,
        })
    }

    /// Weight of a positive, one per anchor.
    pub(super) fn positive_weights(&self, labels: &Labels, frames: &Tensor) -> Result<Tensor> {
        let device = frames.device();
        if self.config.positive_weights.len() == self.anchors.len() {
            let stated: Vec<f32> = self.config.positive_weights.iter().map(|weight| *weight as f32).collect();
            return Ok(Tensor::new(stated, device)?);
        }
        let counted = labels.counted.broadcast_mul(&frames.unsqueeze(2)?)?.sum((0, 1))?.to_vec1::<f32>()?;
        let positive = labels.positive.sum((0, 1))?.to_vec1::<f32>()?;
        let weight = |(counted, positive): (&f32, &f32)| {
            if *positive > 0.0 { ((counted - positive) / positive).min(MAX_WEIGHT) } else { MAX_WEIGHT }
        };
        Ok(Tensor::new(counted.iter().zip(&positive).map(weight).collect::<Vec<f32>>(), device)?)
    }
}

/// The overlap of `span` with the `anchor` clips that end in the middle of `clip`; `None` far from the span, where every
/// candidate is a negative.
fn overlap_nearby((start, end): (f64, f64), clip: usize, anchor: usize) -> Option<f64> {
    let (first, last) = (start.floor(), end.floor());
    let at = clip as f64;
    if at < ((first + last) / 2.0).floor() || at >= last + (last - first + 1.0) {
        return None;
    }
    let (from, to) = (at + 0.5 - anchor as f64, at + 0.5);
    let inter = (end.min(to) - start.max(from)).max(0.0);
    let hull = end.max(to) - start.min(from);
    Some(inter / (hull.min(end - start + to - from) + 1e-8))
}

/// Weighted cross entropy over the candidates that count, summed over anchors, a mean over real clips.
///
/// # Shapes
/// - logits, positive and counted `[batch, clips, anchors]`; weights `[anchors]`; frames `[batch, clips]`, 1 at real clips
pub(super) fn weighted_loss(logits: &Tensor, labels: &Labels, weights: &Tensor, frames: &Tensor) -> Result<Tensor> {
    let y = &labels.positive;
    let factor = (y.broadcast_mul(&(weights - 1.0)?)? + 1.0)?;
    let each = (y.affine(-1.0, 1.0)?.mul(logits)? + factor.mul(&softplus(&logits.neg()?)?)?)?;
    let of_clips = each.mul(&labels.counted)?.sum(2)?.mul(frames)?;
    Ok(of_clips.sum_all()?.div(&frames.sum_all()?.maximum(1.0)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_compared_only_near_the_span() {
        // Clips 2 to 6: looked at from the middle clip 4 to clip 6 + 5 - 1.
        assert!(overlap_nearby((2.0, 6.0), 3, 4).is_none());
        assert!(overlap_nearby((2.0, 6.0), 11, 4).is_none());
        let iou = overlap_nearby((2.0, 6.0), 6, 4).unwrap();
        assert!((iou - 3.5 / 4.5).abs() < 1e-6);
    }
}
