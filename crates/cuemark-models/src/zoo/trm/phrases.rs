//! Phrases: which cells they match, and the losses that tie them to their sentence.

use candle_core::{D, DType, Tensor};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::{mask_out, sigmoid, softplus};

use super::{Forward, Texts, Trm};
use crate::Result;
use crate::layers::{TwoSpaces, cells_of, largest, one_video_each};

/// Which phrases there are, and whose.
pub(super) struct Owners {
    /// The sentence of every phrase.
    sentence: Vec<usize>,
    /// The video of every phrase.
    pub(super) video: Vec<usize>,
    /// For every sentence and slot 1 + the phrase there, 0 where there is none.
    pub(super) slots: Vec<u32>,
    /// 1 for every phrase that is not dropped in this pass.
    pub(super) kept: Vec<f32>,
}

/// The losses of the phrases.
pub(super) struct PhraseLosses {
    pub(super) present: Tensor,
    pub(super) absent: Tensor,
    pub(super) exclusive: Tensor,
}

impl Trm {
    /// Vectors of all phrases in the overlap space, `[phrases, joint]`; a sentence without any is its own only phrase.
    pub(super) fn phrases(&self, texts: &Texts, sentences: &TwoSpaces, pass: &Pass) -> Result<(Tensor, Owners)> {
        let config = &self.config.phrases;
        let (mut rows, mut slots) = (Vec::new(), Vec::new());
        let mut sentence = Vec::new();
        let (mut first, all) = (0, texts.phrases.map_or(0, |phrases| phrases.lengths.len()));
        for number in 0..texts.lengths.len() {
            let count = texts.phrases.map_or(0, |phrases| phrases.per_query[number]);
            let mut own: Vec<u32> = (first..first + count).take(config.most).map(|row| row as u32).collect();
            if own.is_empty() {
                own.push((all + number) as u32);
            }
            slots
                .extend((0..config.most).map(|slot| if slot < own.len() { (rows.len() + slot + 1) as u32 } else { 0 }));
            sentence.extend(own.iter().map(|_| number));
            rows.extend(own);
            first += count;
        }
        let mut vectors = vec![sentences.overlap.clone()];
        if let Some(phrases) = texts.phrases.filter(|phrases| !phrases.lengths.is_empty()) {
            let given = phrases.words.as_ref().unwrap_or(&phrases.word_ids);
            let tokens = self.encoder.sentences.reads(&phrases.word_ids, given);
            let spoken = self.encoder.sentences.forward(tokens, &phrases.lengths, pass)?;
            vectors.insert(0, spoken.overlap);
        }
        let chosen = Tensor::new(rows.as_slice(), sentences.overlap.device())?;
        let vectors = Tensor::cat(&vectors, 0)?.index_select(&chosen, 0)?;
        let kept = pass.draw(|rng| rows.iter().map(|_| f32::from(!rng.chance(config.dropout))).collect());
        let kept = kept.unwrap_or_else(|| vec![1.0; rows.len()]);
        let video = sentence.iter().map(|sentence| texts.video[*sentence]).collect();
        Ok((vectors, Owners { sentence, video, slots, kept }))
    }

    /// Another video of the batch for each, drawn in training and the next one otherwise; none for the only one.
    pub(super) fn other_videos(videos: usize, pass: &Pass) -> Option<Vec<usize>> {
        if videos < 2 {
            return None;
        }
        let steps = pass.draw(|rng| (0..videos).map(|_| 1 + rng.below(videos - 1)).collect());
        let steps: Vec<usize> = steps.unwrap_or_else(|| vec![1; videos]);
        Some(steps.iter().enumerate().map(|(video, step)| (video + step) % videos).collect())
    }

    /// `ious [sentences, cells]`; `others` a negative video for each video.
    pub(super) fn phrase_losses(
        &self,
        forward: &Forward,
        ious: &Tensor,
        video: &[usize],
        others: Option<&[usize]>,
    ) -> Result<PhraseLosses> {
        let (config, owners) = (&self.config.phrases, &forward.owners);
        let (_, videos, cells) = forward.phrase_logits.dims3()?;
        let device = ious.device();
        let kept = Tensor::from_slice(&owners.kept, owners.kept.len(), device)?;
        let own = cells_of(&forward.phrase_logits, &one_video_each(&owners.video, videos, device)?)?;

        // The best cell that overlaps the span enough; no such cell, no loss.
        let inside = ious.ge(config.threshold)?.to_dtype(DType::F32)?;
        let sentence: Vec<u32> = owners.sentence.iter().map(|sentence| *sentence as u32).collect();
        let inside_own = inside.index_select(&Tensor::new(sentence, device)?, 0)?;
        let best = largest(&mask_out(&own, &inside_own, -1e9)?, D::Minus1)?;
        let some = inside_own.max(1)?;
        // Where there is none, the logit is replaced before the loss, which would otherwise multiply infinity by 0.
        let present = (focal_present(&mask_out(&best, &some, 0.0)?, config.focal)? * (some * &kept)?)?;
        let present = mean_over(&present, &kept)?;

        let absent = match others {
            None => Tensor::zeros((), DType::F32, device)?,
            Some(others) => {
                let best = focal_absent(&largest(&forward.phrase_logits, D::Minus1)?, config.focal)?; // [phrases, videos]
                let elsewhere: Vec<usize> = owners.video.iter().map(|video| others[*video]).collect();
                let elsewhere = one_video_each(&elsewhere, videos, device)?;
                let strange = |own: &usize| others.iter().map(|other| f32::from(other == own)).collect::<Vec<_>>();
                let strange: Vec<f32> = owners.video.iter().flat_map(strange).collect();
                let strange = Tensor::from_vec(strange, (owners.video.len(), videos), device)?;
                let mean = |pairs: Tensor| {
                    let pairs = pairs.broadcast_mul(&kept.unsqueeze(1)?)?;
                    mean_over(&(&best * &pairs)?, &pairs)
                };
                ((mean(elsewhere)? + mean(strange)?)? / 2.0)?
            }
        };

        // Per cell the phrase that fits least; sentences without a kept phrase add nothing.
        let (count, most) = (video.len(), config.most);
        let slots = Tensor::from_slice(&owners.slots, owners.slots.len(), device)?;
        let own = own.pad_with_zeros(0, 1, 0)?.index_select(&slots, 0)?.reshape((count, most, cells))?;
        let kept = kept.pad_with_zeros(0, 1, 0)?.index_select(&slots, 0)?.reshape((count, most, 1))?;
        let far = mask_out(&own.neg()?, &kept, -1e9)?;
        let least = largest(&far.transpose(1, 2)?, D::Minus1)?.neg()?; // [sentences, cells]
        let some = kept.max(1)?;
        let least = mask_out(&least, &some, 0.0)?;
        let outside = inside.affine(-1.0, 1.0)?;
        let exclusive = (focal_absent(&least, config.focal)?.broadcast_mul(&some)? * &outside)?.sum_all()?;
        // The released mean pads every video to the one with most sentences and counts the padding's cells as well.
        let mut per_video = vec![0; videos];
        video.iter().for_each(|video| per_video[*video] += 1);
        let padded = videos * per_video.iter().max().copied().unwrap_or(0) - count;
        let counted = (outside.sum_all()? + (padded * cells) as f64)?.maximum(1.0)?;
        Ok(PhraseLosses { present, absent, exclusive: (exclusive / counted)? })
    }
}

/// `-log(p) (1 - p)^focal` of a logit.
fn focal_present(logits: &Tensor, focal: f64) -> candle_core::Result<Tensor> {
    focal_absent(&logits.neg()?, focal)
}

/// `-log(1 - p) p^focal` of a logit.
fn focal_absent(logits: &Tensor, focal: f64) -> candle_core::Result<Tensor> {
    softplus(logits)? * sigmoid(logits)?.powf(focal)?
}

/// Sum over the sum of `weights`; 0 where that is 0.
fn mean_over(x: &Tensor, weights: &Tensor) -> candle_core::Result<Tensor> {
    x.sum_all()? / weights.sum_all()?.maximum(1.0)?
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    #[test]
    fn focal_terms_are_right_by_hand() {
        let logits = Tensor::new(&[2f32.ln(), 0.0], &Device::Cpu).unwrap(); // p = 2/3 and 1/2
        let absent = focal_absent(&logits, 2.0).unwrap().to_vec1::<f32>().unwrap();
        assert!((absent[0] - 3f32.ln() * 4.0 / 9.0).abs() < 1e-6 && (absent[1] - 2f32.ln() / 4.0).abs() < 1e-6);
        let present = focal_present(&logits, 2.0).unwrap().to_vec1::<f32>().unwrap();
        assert!((present[0] - 1.5f32.ln() / 9.0).abs() < 1e-6);
    }
}
