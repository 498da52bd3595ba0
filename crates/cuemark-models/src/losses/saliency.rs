//! Losses of one score per clip.

use candle_core::{Result, Tensor};
use cuemark_tensor::functional::{mask_out, softplus};
use serde::{Deserialize, Serialize};

use crate::{ClipPairs, JointTruth};

/// How clip scores are trained, `saliency` in `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SaliencyWeights {
    /// By how much a good clip must beat a bad one. Default: 0.2
    pub margin: f64,
    /// Weight of the loss. Default: 1.0
    pub weight: f64,
}

impl Default for SaliencyWeights {
    fn default() -> Self {
        Self { margin: 0.2, weight: 1.0 }
    }
}

/// Twice the mean over samples and pairs of what a good clip lacks of beating a bad one by `margin`; scores `[batch, clips]`.
///
/// # Errors
/// Those of the tensor operations.
pub fn margin_loss(scores: &Tensor, pairs: &ClipPairs, margin: f64) -> Result<Tensor> {
    let rows = |clips: &[[u32; 2]]| {
        let flat: Vec<u32> = clips.iter().flatten().copied().collect();
        scores.gather(&Tensor::from_vec(flat, (clips.len(), 2), scores.device())?, 1)
    };
    let lacking = ((rows(&pairs.negative)? - rows(&pairs.positive)?)? + margin)?.relu()?;
    lacking.mean_all()? * 2.0
}

/// Temperature of the ranking loss.
const TEMPERATURE: f64 = 0.5;
/// Grades that a clip can reach, and what the sum over them is divided by, as published.
const GRADES: [usize; 2] = [11, 12];

/// The ranking loss: for every grade from 1 to 11, clips of at least that grade are told from all others of their row.
/// A twelfth of the sum over grades, mean over rows; exactly 0 when no clip has a grade.
///
/// # Shapes
/// - scores and mask `[rows, clips]`; `grades`, 0 where there are none, may be shorter than a row and are 0 after their end
///
/// # Errors
/// Those of the tensor operations.
pub fn rank_contrast(scores: &Tensor, grades: &[Vec<f32>], mask: &Tensor) -> Result<Tensor> {
    let (rows, clips) = scores.dims2()?;
    // The logarithms are the same for every grade, so all grades come down to one weight per clip.
    let mut weights = vec![0f32; rows * clips];
    for (grades, weights) in grades.iter().zip(weights.chunks_mut(clips.max(1))) {
        for grade in 1..=GRADES[0] {
            let reached = |value: &f32| *value >= grade as f32;
            let count = grades.iter().filter(|value| reached(value)).count();
            let share = (1.0 / (count as f64 + 1e-6)) as f32;
            for (weight, _) in weights.iter_mut().zip(grades).filter(|(_, value)| reached(value)) {
                *weight += share;
            }
        }
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        return scores.sum_all()? * 0.0;
    }
    let logits = (mask_out(scores, mask, -1000.0)? / TEMPERATURE)?;
    let logits = logits.broadcast_sub(&logits.detach().max_keepdim(1)?)?;
    let total = (logits.exp()?.sum_keepdim(1)? + 1e-6)?.log()?;
    let weights = (Tensor::from_vec(weights, (rows, clips), scores.device())? * mask)?;
    let lost = (logits.broadcast_sub(&total)? * weights)?.sum_all()?.neg()?;
    lost / (rows.max(1) * GRADES[1]) as f64
}

/// The mean over samples of `-log(1 - sigmoid(score))` summed over real clips: no clip of a wrong pair is salient.
///
/// # Errors
/// Those of the tensor operations.
pub fn wrong_pairs(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    (softplus(scores)? * mask)?.sum(1)?.mean_all()
}

/// The three losses of clips that are scored for their own query and for another one.
#[derive(Debug, Clone)]
pub struct PairedSaliency {
    /// By [`margin_loss`].
    pub margin: Tensor,
    /// By [`rank_contrast`], over the clips of both scorings.
    pub rank: Tensor,
    /// By [`wrong_pairs`].
    pub wrong: Tensor,
}

impl PairedSaliency {
    /// Of the scores for the own and for another query, `[batch, clips]` each.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn of([own, other]: [&Tensor; 2], mask: &Tensor, truth: &JointTruth, margin: f64) -> Result<Self> {
        let grades = twice_as_long(&truth.totals, own.dim(1)?);
        Ok(Self {
            margin: margin_loss(own, &truth.pairs, margin)?,
            rank: rank_contrast(&Tensor::cat(&[own, other], 1)?, &grades, &Tensor::cat(&[mask, mask], 1)?)?,
            wrong: wrong_pairs(other, mask)?,
        })
    }

    /// # Errors
    /// Those of the tensor operations.
    pub fn sum(&self) -> Result<Tensor> {
        (&self.margin + &self.rank)? + &self.wrong
    }

    /// As they are logged.
    pub fn parts(self) -> [(&'static str, Tensor); 3] {
        [("saliency margin", self.margin), ("saliency rank", self.rank), ("wrong pairs", self.wrong)]
    }
}

/// Grades of rows that are followed by as many clips of wrong pairs, which have none.
pub fn twice_as_long(grades: &[Vec<f32>], clips: usize) -> Vec<Vec<f32>> {
    let longer = |row: &Vec<f32>| row.iter().copied().chain(std::iter::repeat(0.0)).take(2 * clips).collect();
    grades.iter().map(longer).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{DType, Device};

    use super::*;

    fn scores() -> Tensor {
        Tensor::new(&[[0.5f32, -0.25, 1.0, 9.0]], &Device::Cpu).unwrap()
    }

    fn mask() -> Tensor {
        Tensor::new(&[[1f32, 1.0, 1.0, 0.0]], &Device::Cpu).unwrap()
    }

    #[test]
    fn a_pair_costs_what_it_lacks_of_the_margin() {
        let pairs = ClipPairs { positive: vec![[2, 0]], negative: vec![[1, 2]] };
        let loss = margin_loss(&scores(), &pairs, 0.2).unwrap().to_scalar::<f32>().unwrap();
        assert!((loss - 2.0 * (0.0 + 0.7) / 2.0).abs() < 1e-6, "{loss}");
    }

    #[test]
    fn ranking_is_a_softmax_per_grade_and_nothing_without_grades() {
        let none = rank_contrast(&scores(), &[vec![0.0; 4]], &mask()).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(none, 0.0);
        // Clip 0 has grade 2, clip 2 grade 1: both count in the first grade, clip 0 alone in the second.
        let found = rank_contrast(&scores(), &[vec![2.0, 0.0, 1.0]], &mask()).unwrap().to_scalar::<f32>().unwrap();
        let total = (1f32.exp() + (-0.5f32).exp() + 2f32.exp()).ln();
        let by_hand = (((total - 1.0) + (total - 2.0)) / 2.0 + (total - 1.0)) / 12.0;
        assert!((found - by_hand).abs() < 1e-5, "{found} {by_hand}");
    }

    #[test]
    fn undecided_wrong_pairs_cost_log_two_for_every_real_clip() {
        let undecided = Tensor::zeros((1, 4), DType::F32, &Device::Cpu).unwrap();
        let loss = wrong_pairs(&undecided, &mask()).unwrap().to_scalar::<f32>().unwrap();
        assert!((loss - 3.0 * 2f32.ln()).abs() < 1e-6);
    }
}
