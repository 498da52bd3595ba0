//! What training makes smaller.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{log_softmax, sigmoid, softmax};
use cuemark_tensor::{DType, MatrixProduct as _, Pass};

use super::{CgDetr, Projected, Seen, Taught, unit};
use crate::layers::detr::{JointInputs, pick_rows};
use crate::losses::{
    LabelLoss, SetLayer, SetLosses, margin_loss, rank_contrast, set_losses, twice_as_long, wrong_pairs,
};
use crate::{ClipPairs, JointTruth, Result};

pub(super) struct Losses {
    pub(super) set: Vec<SetLosses>,
    pub(super) saliency: SaliencyParts,
    pub(super) align: Alignment,
    pub(super) distill: Tensor,
    pub(super) apart: Tensor,
    pub(super) total: Tensor,
}

/// Videos as seen with words.
#[derive(Clone, Copy)]
pub(super) struct Views<'a> {
    /// With their own.
    pub(super) right: &'a Seen,
    /// Those at `negatives` with words about something else.
    pub(super) wrong: Option<&'a Seen>,
    pub(super) negatives: &'a [usize],
}

pub(super) struct SaliencyParts {
    pub(super) margin: Tensor,
    pub(super) rank: Tensor,
    pub(super) rank_false: Tensor,
    pub(super) wrong: Tensor,
    pub(super) share_margin: Tensor,
    pub(super) share_rank: Tensor,
    pub(super) share_entropy: Tensor,
    pub(super) share_wrong: Tensor,
    pub(super) sum: Tensor,
}

pub(super) struct Alignment {
    pub(super) sentence: Tensor,
    pub(super) dummy: Tensor,
    pub(super) clips: Tensor,
    pub(super) sum: Tensor,
}

/// `log(p)`, at least -100, exactly -100 and without gradient at 0, as the published code has it.
fn limited_log(p: &Tensor) -> Result<Tensor> {
    let none = p.le(0f32)?.to_dtype(DType::F32)?;
    let log = ((p + &none)?.log()? * none.affine(-1.0, 1.0)?)?;
    Ok((log - (none * 100.0)?)?.maximum(-100.0)?)
}

/// Cross entropy of probabilities.
fn entropy(p: &Tensor, wanted: &Tensor) -> Result<Tensor> {
    let right = (limited_log(p)? * wanted)?;
    let wrong = (limited_log(&p.affine(-1.0, 1.0)?)? * wanted.affine(-1.0, 1.0)?)?;
    Ok((right + wrong)?.neg()?)
}

/// The mean over rows of the cross entropy with one class each.
fn classes(logits: &Tensor, classes: Vec<u32>) -> Result<Tensor> {
    let rows = classes.len();
    let classes = Tensor::from_vec(classes, (rows, 1), logits.device())?;
    Ok(log_softmax(logits, D::Minus1)?.gather(&classes, 1)?.mean_all()?.neg()?)
}

/// The mean size of the cosines of different rows, `[batch, rows, width]`; the second of every two learns nothing.
fn likeness(rows: &Tensor) -> Result<Tensor> {
    let rows = unit(rows)?;
    let (batch, count, _) = rows.dims3()?;
    let others = Tensor::eye(count, DType::F32, rows.device())?.affine(-1.0, 1.0)?;
    let cosines = rows.times(&rows.detach().t()?.contiguous()?)?.broadcast_mul(&others)?;
    Ok((cosines.abs()?.sum_all()? / (batch * count * count).max(1) as f64)?)
}

impl CgDetr {
    /// Videos with the words of the next sample, where that shows another source; `None` without any.
    pub(super) fn see_wrong(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        rows: &[usize],
        pass: &Pass,
    ) -> Result<Option<Seen>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let next = inputs.next_text();
        let texts: Vec<usize> = rows.iter().map(|row| next[*row]).collect();
        self.see(inputs, projected, [rows, &texts], pass).map(Some)
    }

    pub(super) fn losses(
        &self,
        inputs: &JointInputs,
        projected: &Projected,
        layers: &[SetLayer],
        views: Views,
        taught: &Taught,
        truth: &JointTruth,
    ) -> Result<Losses> {
        let label = LabelLoss::Entropy { background: self.config.background };
        let set = set_losses(layers, &truth.windows, &self.config.costs, label)?;
        let saliency = self.saliency_losses(inputs, views, truth)?;
        let align = align(inputs, taught, truth)?;
        let distill = distill(views.right, taught, truth)?;
        let apart = (likeness(&projected.dummies)? + likeness(&self.prompts.unsqueeze(0)?)?)?;
        let mut total = (&saliency.sum * self.config.saliency.weight)?;
        for losses in &set {
            total = (total + losses.weighted(&self.config.weights)?)?;
        }
        total = (total + (&align.sum * self.config.align_weight)?)?;
        total = (total + ((&distill + &apart)? * self.config.distill_weight)?)?;
        Ok(Losses { set, saliency, align, distill, apart, total })
    }

    fn saliency_losses(&self, inputs: &JointInputs, views: Views, truth: &JointTruth) -> Result<SaliencyParts> {
        let Views { right, wrong, negatives } = views;
        let (mask, steps, margin) = (&inputs.video_mask, inputs.steps(), self.config.saliency.margin);
        let grades = |rows: &[usize]| rows.iter().map(|row| truth.totals[*row].clone()).collect::<Vec<Vec<f32>>>();
        let none = (right.saliency.sum_all()? * 0.0)?;
        let ranked = |scores: &Tensor, wrong: Option<&Tensor>| -> Result<Tensor> {
            let Some(wrong) = wrong else { return Ok(rank_contrast(scores, &truth.totals, mask)?) };
            let mask = pick_rows(mask, negatives)?;
            let both = Tensor::cat(&[&pick_rows(scores, negatives)?, wrong], 1)?;
            let longer = twice_as_long(&grades(negatives), steps);
            Ok(rank_contrast(&both, &longer, &Tensor::cat(&[&mask, &mask], 1)?)?)
        };
        let others: Vec<usize> = (0..inputs.len()).filter(|row| !negatives.contains(row)).collect();
        // One such sample alone comes to nothing in the published code, by a maximum over the wrong axis.
        let rank_false = if wrong.is_some() && others.len() > 1 {
            let mask = pick_rows(mask, &others)?;
            rank_contrast(&pick_rows(&right.saliency, &others)?, &grades(&others), &mask)?
        } else {
            none.clone()
        };
        let pairs: &ClipPairs = &truth.pairs;
        let (mut of_wrong, mut share_wrong) = (none.clone(), none);
        if let Some(wrong) = wrong {
            let mask = pick_rows(mask, negatives)?;
            of_wrong = wrong_pairs(&wrong.saliency, &mask)?;
            let left = wrong.word_share.affine(-1.0, 1.0)?.maximum(1e-12)?;
            share_wrong = (left.log()?.neg()? * mask)?.sum(1)?.mean_all()?;
        }
        let wanted = truth.graded_clips(inputs.device())?;
        let parts = [
            margin_loss(&right.saliency, pairs, margin)?,
            ranked(&right.saliency, wrong.map(|wrong| &wrong.saliency))?,
            margin_loss(&right.word_share, pairs, margin)?,
            ranked(&right.word_share, wrong.map(|wrong| &wrong.word_share))?,
            entropy(&right.word_share, &wanted)?.mean_all()?,
        ];
        let [of_margin, rank, share_margin, share_rank, share_entropy] = parts;
        let of_scores = (((&of_margin + &rank)? + &rank_false)? + &of_wrong)?;
        let of_shares = (((&share_margin + &share_rank)? + &share_entropy)? + &share_wrong)?;
        Ok(SaliencyParts {
            sum: (of_scores + (of_shares * self.config.attention_weight)?)?,
            margin: of_margin,
            rank,
            rank_false,
            wrong: of_wrong,
            share_margin,
            share_rank,
            share_entropy,
            share_wrong,
        })
    }
}

/// Moments meet their sentences, and clips the token of what they belong to.
fn align(inputs: &JointInputs, taught: &Taught, truth: &JointTruth) -> Result<Alignment> {
    let batch = inputs.len();
    let [moment, other, sentence, dummy] =
        [&taught.moment[0], &taught.other[0], &taught.sentence[0], &taught.dummy[0]].map(unit);
    let (moment, other) = (moment?, other?);
    let against = |text: Tensor| -> Result<Tensor> {
        let text = text.t()?.contiguous()?;
        Ok(Tensor::cat(&[&moment.times(&text)?, &other.times(&text)?], 1)?)
    };
    let own = (0..batch as u32).collect();
    let of_sentence = classes(&against(sentence?)?, own)?;
    // An argmax over a matrix of zeros and ones in the published code: the first sample has class 1, all others class 0.
    let of_dummy = classes(&against(dummy?)?, (0..batch).map(|row| u32::from(row == 0)).collect())?;
    let relevant = truth.graded_clips(inputs.device())?;
    let keep = relevant.unsqueeze(2)?;
    let clips = (taught.moment[1].broadcast_mul(&keep)? + taught.other[1].broadcast_mul(&keep.affine(-1.0, 1.0)?)?)?;
    let sure = sigmoid(&clips.broadcast_mul(&taught.moment[0].unsqueeze(1)?)?.sum(2)?)?;
    let of_clips = (entropy(&sure, &relevant)? * &inputs.video_mask)?.mean_all()?;
    let sum = ((&of_sentence + &of_dummy)? + &of_clips)?;
    Ok(Alignment { sentence: of_sentence, dummy: of_dummy, clips: of_clips, sum })
}

/// The attention of relevant clips is drawn to what moments and words have in common.
fn distill(right: &Seen, taught: &Taught, truth: &JointTruth) -> Result<Tensor> {
    let (wanted, log) = (softmax(&taught.wanted, D::Minus1)?, log_softmax(&taught.wanted, D::Minus1)?);
    let far = (wanted * (log - (&right.attention + 1e-6)?.log()?)?)?.mean(D::Minus1)?;
    let relevant = truth.graded_clips(far.device())?;
    let count: f32 = truth.totals.iter().flatten().filter(|total| **total > 0.0).count() as f32;
    Ok(((far * relevant)?.sum_all()? / f64::from(count.max(1.0)))?)
}
