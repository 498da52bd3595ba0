//! What training makes smaller, once every sentence has a proposal.

use candle_core::{D, Tensor};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{bce_with_logits, log_softmax, mask_out};

use super::matching::{Matching, block_labels, matched_labels};
use super::{Asked, Forward, Group, Label, Layer, Lvtr, sentence_features};
use crate::losses::generalised_overlap;
use crate::{Batch, Result};

/// The parts of one layer's loss.
pub(super) struct Losses {
    pub(super) span: Tensor,
    pub(super) overlap: Tensor,
    pub(super) label: Tensor,
    pub(super) matched: Option<Tensor>,
}

impl Lvtr {
    /// # Shapes
    /// - truth: centre and width of every sentence of every group
    pub(super) fn losses(&self, layer: &Layer, truth: &[Vec<[f32; 2]>]) -> Result<(Losses, Vec<Matching>)> {
        let device = layer.spans.device();
        let (groups, proposals, sentences) = layer.logits.dims3()?;
        let matchings = self.matchings(layer, truth)?;
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        let mut labels = Vec::with_capacity(groups * proposals);
        let mut matched = vec![0f32; groups * proposals];
        for (group, (matching, truth)) in matchings.iter().zip(truth).enumerate() {
            labels.extend(match self.config.label {
                Label::Pred => matched_labels(matching, proposals, sentences),
                _ => block_labels(proposals, truth.len()),
            });
            for (proposal, sentence) in matching {
                matched[group * proposals + proposal] = 1.0;
                rows.push((group * proposals + proposal) as u32);
                wanted.extend(truth[*sentence]);
            }
        }
        let pairs = rows.len();
        let found = layer.spans.flatten_to(1)?.index_select(&Tensor::new(rows, device)?, 0)?;
        let wanted = Tensor::from_vec(wanted, (pairs, 2), device)?;
        let log = log_softmax(&layer.logits.flatten_to(1)?, D::Minus1)?;
        let right = log.gather(&Tensor::from_vec(labels, (groups * proposals, 1), device)?, 1)?;
        let matched = match &layer.matched {
            Some(logits) => {
                let wanted = Tensor::from_vec(matched, (groups, proposals), device)?;
                Some(bce_with_logits(logits, &wanted)?.mean_all()?)
            }
            None => None,
        };
        let losses = Losses {
            span: (&found - &wanted)?.abs()?.mean_all()?,
            overlap: generalised_overlap(&found, &wanted)?.affine(-1.0, 1.0)?.mean_all()?,
            label: right.mean_all()?.neg()?,
            matched,
        };
        Ok((losses, matchings))
    }

    pub(super) fn total(&self, losses: &Losses) -> Result<Tensor> {
        let span = ((&losses.span * self.config.span_weight)? + (&losses.overlap * self.config.overlap_weight)?)?;
        let label = match &losses.matched {
            Some(matched) => (&losses.label + matched)?,
            None => losses.label.clone(),
        };
        Ok((span + (label * self.config.label_weight)?)?)
    }

    pub(super) fn gather(&self, batch: &Batch, groups: &[Group]) -> Result<Asked> {
        let slots = self.config.sentences;
        let device = batch.videos.visual.device();
        let none = batch.len(); // the row of zeros after the sentences
        let slot = |group: &Group, slot: usize| group.queries.get(slot).copied().unwrap_or(none);
        let rows: Vec<usize> = groups.iter().flat_map(|group| (0..slots).map(move |n| slot(group, n))).collect();
        let mask: Vec<f32> = rows.iter().map(|row| f32::from(u8::from(*row < none))).collect();
        let rows = Tensor::new(rows.into_iter().map(|row| row as u32).collect::<Vec<_>>(), device)?;
        let videos = Tensor::new(groups.iter().map(|group| group.video as u32).collect::<Vec<_>>(), device)?;
        let text = sentence_features(&batch.queries)?.pad_with_zeros(0, 0, 1)?.index_select(&rows, 0)?;
        Ok(Asked {
            clips: batch.videos.visual.contiguous()?.index_select(&videos, 0)?,
            clip_mask: batch.videos.mask.contiguous()?.index_select(&videos, 0)?,
            text: text.reshape((groups.len(), slots, ()))?,
            text_mask: Tensor::from_vec(mask, (groups.len(), slots), device)?,
        })
    }
}

/// Cross entropy of where sentences look, a softmax over the clips as the encoder leaves them, with the clips of their moments; a mean
/// over sentences.
///
/// # Shapes
/// - truth: centre and width of every sentence of every group
pub(super) fn look_loss(asked: &Asked, forward: &Forward, truth: &[Vec<[f32; 2]>]) -> Result<Tensor> {
    let (groups, clips, hidden) = forward.clip_memory.dims3()?;
    let sentences = forward.text_memory.dim(1)?;
    let products = forward.text_memory.times(&forward.clip_memory.transpose(1, 2)?.contiguous()?)?;
    let scores = mask_out(&(products / (hidden as f64).sqrt())?, &asked.clip_mask.unsqueeze(1)?, -1e9)?;
    let looks = log_softmax(&scores, D::Minus1)?;
    let lengths = asked.clip_mask.sum(1)?.to_vec1::<f32>()?;
    // What each clip counts: a sentence's clips share one whole, so that a long moment weighs as much as a short one.
    let mut wanted = vec![0f32; groups * sentences * clips];
    for ((group, truth), length) in truth.iter().enumerate().zip(lengths) {
        for (sentence, [centre, width]) in truth.iter().enumerate() {
            let real = (length as usize).max(1);
            let first = (((centre - width / 2.0) * length).floor().max(0.0) as usize).min(real - 1);
            let end = (((centre + width / 2.0) * length).ceil() as usize).clamp(first + 1, real);
            let row = (group * sentences + sentence) * clips;
            wanted[row + first..row + end].fill(1.0 / (end - first) as f32);
        }
    }
    let count = truth.iter().map(Vec::len).sum::<usize>().max(1);
    let wanted = Tensor::from_vec(wanted, (groups, sentences, clips), looks.device())?;
    Ok((wanted.mul(&looks)?.sum_all()?.neg()? / count as f64)?)
}
