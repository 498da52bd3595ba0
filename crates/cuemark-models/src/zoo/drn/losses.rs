//! What training makes smaller, at every place of every level.

use candle_core::Tensor;
use cuemark_tensor::functional::{mask_out, sigmoid, softplus};

use super::{Clamp, Drn, Forward, all};
use crate::Result;
use crate::losses::smooth_l1;

/// What locations of one level should say.
pub(super) struct LevelTruth {
    /// `[batch, locations]`, 1 where a location answers for the moment.
    pub(super) positive: Tensor,
    /// `[batch, locations, 2]`, in clips, negative outside the moment.
    pub(super) distances: Tensor,
}

impl Drn {
    /// What the locations of each level should say about `spans`, start and end as fractions.
    pub(super) fn truth(&self, spans: &[(f64, f64)], like: &Tensor) -> Result<Vec<LevelTruth>> {
        let whole = self.config.clips as f64;
        let of_level = |level: usize| {
            let (locations, bounds) = (self.locations(level), self.config.levels[level]);
            let (mut positive, mut distances) = (Vec::new(), Vec::new());
            for (start, end) in spans {
                for location in &locations {
                    let (left, right) = (location - start * whole, end * whole - location);
                    let inside = left.min(right) > 0.0 && (bounds.from..=bounds.to).contains(&left.max(right));
                    positive.push(f32::from(u8::from(inside)));
                    distances.extend([left as f32, right as f32]);
                }
            }
            let (rows, count) = (spans.len(), locations.len());
            Ok(LevelTruth {
                positive: Tensor::from_vec(positive, (rows, count), like.device())?,
                distances: Tensor::from_vec(distances, (rows, count, 2), like.device())?,
            })
        };
        (0..self.config.levels.len()).map(of_level).collect()
    }

    /// Focal loss of the scores over all locations, divided by positives and queries.
    pub(super) fn class_loss(&self, forward: &Forward, truth: &[LevelTruth]) -> Result<Tensor> {
        let (logits, positive) = (all(&forward.levels, |level| &level.class)?, all(truth, |level| &level.positive)?);
        let p = sigmoid(&logits)?;
        let missed = p.affine(-1.0, 1.0)?.powf(self.config.gamma)?.mul(&softplus(&logits.neg()?)?)?;
        let false_alarm = p.powf(self.config.gamma)?.mul(&softplus(&logits)?)?;
        let each = ((positive.mul(&missed)? * self.config.alpha)?
            + (positive.affine(-1.0, 1.0)?.mul(&false_alarm)? * (1.0 - self.config.alpha))?)?;
        let count = (positive.sum_all()? + logits.dim(0)? as f64)?;
        Ok(each.sum_all()?.div(&count)?)
    }

    /// Minus the log of the overlap with the truth, a mean over positive locations; 0 without one.
    pub(super) fn distance_loss(&self, forward: &Forward, truth: &[LevelTruth]) -> Result<Tensor> {
        let positive = all(truth, |level| &level.positive)?;
        let (ours, theirs) = (all(&forward.levels, |level| &level.distances)?, all(truth, |level| &level.distances)?);
        let count = positive.sum_all()?;
        // Where a location is no positive its distances may be negative: any overlap will do, it counts for nothing.
        let theirs = mask_out(&theirs, &positive.unsqueeze(2)?, 1.0)?;
        let inter = ours.minimum(&theirs)?.sum(2)?;
        let union = ((ours.sum(2)? + theirs.sum(2)?)? - &inter)?;
        let each = ((union + 1e-8)?.log()? - (inter + 1e-8)?.log()?)?;
        Ok(each.mul(&positive)?.sum_all()?.div(&count.maximum(1.0)?)?)
    }

    /// How well the overlap head knows the overlap of good predictions, a mean over them; 0 without one.
    pub(super) fn overlap_loss(&self, forward: &Forward, spans: &[(f64, f64)]) -> Result<Tensor> {
        let logits = all(&forward.levels, |level| &level.overlap)?;
        let decoded = self.decoded(forward)?.to_vec3::<f32>()?;
        let (mut ious, mut good) = (Vec::new(), Vec::new());
        for (rows, (start, end)) in decoded.iter().zip(spans) {
            for (place, row) in rows.iter().enumerate() {
                let clamped = place == 0 || self.config.clamp == Clamp::All;
                let bound = |x: f32| if clamped { f64::from(x).clamp(0.0, 1.0) } else { f64::from(x) };
                let (from, to) = (bound(row[0]), bound(row[1]));
                let iou = (to.min(*end) - from.max(*start)).max(0.0) / (to.max(*end) - from.min(*start)).max(1e-8);
                ious.push(iou as f32);
                good.push(f32::from(u8::from(iou > self.config.overlap)));
            }
        }
        let ious = Tensor::from_vec(ious, logits.shape(), logits.device())?;
        let good = Tensor::from_vec(good, logits.shape(), logits.device())?;
        let each = smooth_l1(&(sigmoid(&logits)? - ious)?)?.mul(&good)?;
        Ok(each.sum_all()?.div(&good.sum_all()?.maximum(1.0)?)?)
    }
}
