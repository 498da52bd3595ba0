//! What training makes smaller.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{log_softmax, softplus};
use cuemark_tensor::{DType, MatrixProduct as _};

use super::labels::Truth;
use super::{Forward, UniVtg, unit};
use crate::Result;
use crate::layers::detr::JointInputs;
use crate::losses::{overlap_of_bounds, smooth_l1};

/// The parts of the loss.
pub(super) struct Losses {
    pub(super) boundary: Tensor,
    pub(super) overlap: Tensor,
    pub(super) inside: Tensor,
    pub(super) inter: Tensor,
    pub(super) intra: Tensor,
    pub(super) total: Tensor,
}

/// Divides similarities.
const TEMPERATURE: f64 = 0.07;
/// The logarithm of the smallest number, which hides a clip from a softmax.
pub(super) const HIDDEN: f32 = -103.278_93;

impl UniVtg {
    pub(super) fn losses(&self, inputs: &JointInputs, forward: &Forward, truth: &Truth) -> Result<Losses> {
        let [boundary, overlap] = spans(inputs, forward, truth)?;
        let inside = self.inside(inputs, forward, truth)?;
        let [inter, intra] = contrasts(inputs, forward, truth)?;
        let config = &self.config;
        let mut total = ((&boundary * config.boundary_weight)? + (&overlap * config.overlap_weight)?)?;
        total = (total + (&inside * config.inside_weight)?)?;
        total = ((total + (&intra * config.intra_weight)?)? + (&inter * config.inter_weight)?)?;
        Ok(Losses { boundary, overlap, inside, inter, intra, total })
    }

    /// Cross entropy of being inside a window; the mean over real clips, not divided by the weights.
    fn inside(&self, inputs: &JointInputs, forward: &Forward, truth: &Truth) -> Result<Tensor> {
        let (batch, steps) = forward.inside.dims2()?;
        let (mut right, mut wrong) = (vec![0f32; batch * steps], vec![0f32; batch * steps]);
        for (sample, labels) in truth.labels.iter().enumerate() {
            for (clip, inside) in labels.inside.iter().enumerate() {
                let place = sample * steps + clip;
                if *inside { right[place] = 1.0 } else { wrong[place] = self.config.background as f32 }
            }
        }
        let real: usize = inputs.clips.iter().sum();
        let weights = |values: Vec<f32>| Tensor::from_vec(values, (batch, steps), forward.inside.device());
        // The published code takes logarithms of probabilities and stops them at -100.
        let of_right = (softplus(&forward.inside.neg()?)?.minimum(100.0)? * weights(right)?)?;
        let of_wrong = (softplus(&forward.inside)?.minimum(100.0)? * weights(wrong)?)?;
        Ok(((of_right + of_wrong)?.sum_all()? / real.max(1) as f64)?)
    }
}

/// Distance and overlap of the spans that clips inside a window say, and that window.
fn spans(inputs: &JointInputs, forward: &Forward, truth: &Truth) -> Result<[Tensor; 2]> {
    let (mut rows, mut times, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (sample, labels) in truth.labels.iter().enumerate() {
        for clip in (0..labels.inside.len()).filter(|clip| labels.inside[*clip]) {
            rows.push((sample * inputs.steps() + clip) as u32);
            times.push(labels.times[clip]);
            starts.push(labels.bounds[clip][0]);
            ends.push(labels.bounds[clip][1]);
        }
    }
    if rows.is_empty() {
        let none = (forward.offsets.sum_all()? * 0.0)?;
        return Ok([none.clone(), none]);
    }
    let (count, device) = (rows.len(), forward.offsets.device());
    let offsets = forward.offsets.flatten_to(1)?.index_select(&Tensor::new(rows, device)?, 0)?;
    let column = |values: Vec<f32>| Tensor::from_vec(values, count, device);
    let times = column(times)?;
    let said = |place: usize| offsets.narrow(1, place, 1)?.squeeze(1)? + &times;
    let ([start, end], wanted) = ([said(0)?, said(1)?], [column(starts)?, column(ends)?]);
    let far = (smooth_l1(&(&start - &wanted[0])?)? + smooth_l1(&(&end - &wanted[1])?)?)?;
    let overlap = overlap_of_bounds([start, end], wanted)?.affine(-1.0, 1.0)?.mean_all()?;
    Ok([(far.sum_all()? / count as f64)?, overlap])
}

/// A good clip of every sample against those of the other samples, and against worse clips of its own video.
fn contrasts(inputs: &JointInputs, forward: &Forward, truth: &Truth) -> Result<[Tensor; 2]> {
    let (batch, steps, _) = forward.clips.dims3()?;
    let device = forward.clips.device();
    if truth.worth.iter().flatten().sum::<f32>() == 0.0 {
        let none = (forward.likeness.sum_all()? * 0.0)?;
        return Ok([none.clone(), none]);
    }
    let rows: Vec<u32> = truth.good.iter().enumerate().map(|(row, clip)| (row * steps + clip) as u32).collect();
    let good = forward.clips.flatten_to(1)?.index_select(&Tensor::new(rows, device)?, 0)?;
    let alike = (unit(&good)?.times(&unit(&forward.sentence)?.t()?.contiguous()?)? / TEMPERATURE)?;
    let own = Tensor::eye(batch, DType::F32, device)?;
    let mean = |logs: Tensor| -> Result<Tensor> { Ok((logs * &own)?.sum_all()?.affine(-1.0 / batch as f64, 0.0)?) };
    let inter = (mean(log_softmax(&alike, 1)?)? + mean(log_softmax(&alike.t()?.contiguous()?, 1)?)?)?;
    let mut hidden = vec![HIDDEN; batch * steps];
    for (sample, (worth, good)) in truth.worth.iter().zip(&truth.good).enumerate() {
        for clip in 0..inputs.clips[sample] {
            if clip == *good || worth[clip] < worth[*good] {
                hidden[sample * steps + clip] = 0.0;
            }
        }
    }
    let kept = ((&forward.likeness + Tensor::from_vec(hidden, (batch, steps), device)?)? / TEMPERATURE)?;
    let clips: Vec<u32> = truth.good.iter().map(|clip| *clip as u32).collect();
    let clips = Tensor::from_vec(clips, batch, device)?;
    let among_clips = log_softmax(&kept, D::Minus1)?.gather(&clips.unsqueeze(1)?, 1)?.mean_all()?.neg()?;
    // The column of a sample's good clip over all samples: `[batch (whose clip), batch (whose video)]`.
    let columns = kept.t()?.contiguous()?.index_select(&clips, 0)?;
    let intra = (among_clips + mean(log_softmax(&columns, 1)?)?)?;
    Ok([inter, intra])
}
