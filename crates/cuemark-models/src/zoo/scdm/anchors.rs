//! Anchors on every map: which there are, what they learn, how they are ranked.

use candle_core::{DType, Tensor};
use cuemark_core::NormSpan;
use cuemark_tensor::functional::bce_with_logits;

use super::{MapOut, Scdm, ScdmConfig};
use crate::losses::smooth_l1;
use crate::{Proposal, Result};

/// A candidate span of one map, in positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) centre: f64,
    pub(super) width: f64,
}

/// The losses of one map, unweighted but for the last.
pub(super) struct MapLoss {
    pub(super) positive: Tensor,
    pub(super) hard: Tensor,
    pub(super) easy: Tensor,
    pub(super) centre: Tensor,
    pub(super) width: Tensor,
    pub(super) weighted: Tensor,
}

impl Scdm {
    /// Overlap of every anchor of a map with each of `spans` (in positions), `[spans, anchors]`.
    pub(super) fn ious(&self, map: usize, spans: &[(f64, f64)], like: &Tensor) -> Result<Tensor> {
        let of_span = |(start, end): &(f64, f64)| {
            let (start, end) = (*start, *end);
            self.anchors[map].iter().map(move |anchor| {
                let (from, to) = anchor.ends();
                let inter = (end.min(to) - start.max(from)).max(0.0);
                let union = end.max(to) - start.min(from);
                if union > 0.0 { (inter / union) as f32 } else { 0.0 }
            })
        };
        let values: Vec<f32> = spans.iter().flat_map(of_span).collect();
        Ok(Tensor::from_vec(values, (spans.len(), self.anchors[map].len()), like.device())?)
    }

    pub(super) fn map_loss(&self, map: usize, out: &MapOut, spans: &[(f64, f64)]) -> Result<MapLoss> {
        let ious = self.ious(map, spans, &out.logits)?;
        let legal: Vec<f32> =
            self.anchors[map].iter().map(|anchor| f32::from(u8::from(self.config.is_legal(*anchor)))).collect();
        let legal = Tensor::from_vec(legal, (1, self.anchors[map].len()), out.logits.device())?;
        let positive = ious.gt(self.config.positive_iou)?.to_dtype(DType::F32)?.broadcast_mul(&legal)?;
        let negative = ious.lt(self.config.negative_iou)?.to_dtype(DType::F32)?.broadcast_mul(&legal)?;
        let hard = out.logits.gt(self.config.hard_logit)?.to_dtype(DType::F32)?.mul(&negative)?;
        let easy = (negative - &hard)?;
        let entropy = bce_with_logits(&out.logits, &ious)?;
        let truth = |value: fn(&(f64, f64)) -> f64| {
            let values: Vec<f32> = spans.iter().map(|span| value(span) as f32).collect();
            Tensor::from_vec(values, (spans.len(), 1), out.logits.device())
        };
        let mean_over = |each: &Tensor, mask: &Tensor| -> Result<Tensor> {
            Ok(each.mul(mask)?.sum_all()?.div(&mask.sum_all()?.maximum(1.0)?)?)
        };
        let centre = smooth_l1(&out.centres.broadcast_sub(&truth(|span| span.0.midpoint(span.1))?)?)?;
        let width = smooth_l1(&out.widths.broadcast_sub(&truth(|span| span.1 - span.0)?)?)?;
        let mut loss = MapLoss {
            positive: mean_over(&entropy, &positive)?,
            hard: mean_over(&entropy, &hard)?,
            easy: mean_over(&entropy, &easy)?,
            centre: mean_over(&centre, &positive)?,
            width: mean_over(&width, &positive)?,
            weighted: Tensor::zeros((), DType::F32, out.logits.device())?,
        };
        let weights = self.config.weights;
        for (part, weight) in [
            (&loss.positive, weights.positive),
            (&loss.hard, weights.hard),
            (&loss.easy, weights.easy),
            (&loss.centre, weights.centre),
            (&loss.width, weights.width),
        ] {
            loss.weighted = (&loss.weighted + (part * weight)?)?;
        }
        Ok(loss)
    }

    /// Decoded anchors no longer than the video, best first, as fractions of its `length` real clips.
    pub(super) fn rank(&self, query: usize, maps: &[[Vec<Vec<f32>>; 3]], length: usize) -> Vec<Proposal> {
        let whole = length.clamp(1, self.config.grid) as f64;
        let mut ranked = Vec::new();
        for (map, [scores, centres, widths]) in maps.iter().enumerate() {
            for (place, anchor) in self.anchors[map].iter().enumerate() {
                let (centre, width) = (f64::from(centres[query][place]), f64::from(widths[query][place]));
                let (start, end) = ((centre - width / 2.0).max(0.0), (centre + width / 2.0).min(whole));
                let fits = self.config.is_legal(*anchor) && width <= whole && start < end;
                let span = NormSpan::new(start / whole, end / whole).filter(|_| fits);
                ranked.extend(span.map(|span| Proposal { span, score: scores[query][place] }));
            }
        }
        if ranked.is_empty() {
            ranked.extend(NormSpan::new(0.0, 1.0).map(|span| Proposal { span, score: 0.0 }));
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }
}

impl ScdmConfig {
    pub(super) fn anchors(&self) -> Vec<Vec<Anchor>> {
        let of_map = |map: usize| {
            let cells = self.grid >> (map + 2);
            let cell = self.grid as f64 / cells as f64;
            let of_cell = move |number: usize| {
                let centre = (number as f64 + 0.5) * cell;
                self.ratios.iter().map(move |ratio| Anchor { centre, width: ratio * cell })
            };
            (0..cells).flat_map(of_cell).collect()
        };
        (0..self.maps).map(of_map).collect()
    }

    fn is_legal(&self, anchor: Anchor) -> bool {
        anchor.width > self.min_anchor && self.max_anchor.is_none_or(|most| anchor.width < most)
    }
}

impl Anchor {
    pub(super) fn ends(self) -> (f64, f64) {
        (self.centre - self.width / 2.0, self.centre + self.width / 2.0)
    }
}
