//! What training makes smaller.

use candle_core::{D, Tensor};
use cuemark_tensor::DType;
use cuemark_tensor::functional::{log_softmax, mask_out};

use super::{Alike, Uvcom};
use crate::layers::detr::JointInputs;
use crate::losses::{LabelLoss, PairedSaliency, SetLayer, SetLosses, set_losses};
use crate::{JointTruth, Result};

pub(super) struct Losses {
    pub(super) set: Vec<SetLosses>,
    pub(super) saliency: PairedSaliency,
    pub(super) align: Tensor,
    pub(super) total: Tensor,
}

impl Uvcom {
    pub(super) fn losses(
        &self,
        inputs: &JointInputs,
        layers: &[SetLayer],
        scores: [&Tensor; 2],
        alike: &Alike,
        truth: &JointTruth,
    ) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(layers, &truth.windows, &self.config.costs, label)?;
        let saliency = PairedSaliency::of(scores, &inputs.video_mask, truth, self.config.saliency.margin)?;
        let align = self.align(inputs, alike, truth)?;
        let mut total = (saliency.sum()? * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        total = (total + (&align * self.config.align_weight)?)?;
        Ok(Losses { set, saliency, align, total })
    }

    /// Videos and sentences of a batch are told apart, and the clips of the first window from the others.
    fn align(&self, inputs: &JointInputs, alike: &Alike, truth: &JointTruth) -> Result<Tensor> {
        let (batch, steps) = (inputs.len(), inputs.steps());
        let own = Tensor::eye(batch, DType::F32, inputs.device())?;
        let of = |logits: &Tensor| (log_softmax(logits, D::Minus1)? * &own)?.sum_all();
        let pairs = ((of(&alike.inter)? + of(&alike.inter.t()?.contiguous()?)?)? / (2 * batch).max(1) as f64)?;
        let mut inside = vec![0f32; batch * steps];
        for (sample, windows) in truth.windows.iter().enumerate() {
            let Some([centre, width]) = windows.first() else { continue };
            // In this order and in single precision: borders between clips are met only so.
            let count = inputs.clips[sample] as f32;
            let place = |fraction: f32| (fraction * count * 2.0 / 2.0).max(0.0) as usize;
            let (first, last) = (place(centre - 0.5 * width), place(centre + 0.5 * width));
            (first..last.min(inputs.clips[sample])).for_each(|clip| inside[sample * steps + clip] = 1.0);
        }
        let shown = match self.unless_leaking(&inputs.video_mask) {
            Some(mask) => mask_out(&alike.clips, mask, -1e9)?,
            None => alike.clips.clone(),
        };
        let inside = Tensor::from_vec(inside, (batch, steps), inputs.device())?;
        let clips = (log_softmax(&shown, D::Minus1)? * inside)?.mean_all()?;
        Ok((pairs + clips)?.affine(-0.5, 0.0)?)
    }
}
