//! Which sentence does this moment belong to, and which moment this sentence? (MMN, eq. 6 and 7)

use candle_core::{DType, Device, Result, Tensor};
use cuemark_core::NormSpan;
use cuemark_tensor::Pass;
use serde::{Deserialize, Serialize};

use super::top_cells;
use crate::layers::{cells_of, one_video_each};

/// Settings of the two contrastive terms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MutualMatching {
    /// What is taken off the cosine of a true pair. Default: 0.4
    pub margin: f64,
    /// What cosines are divided by. Default: 0.1
    pub tau: f64,
    /// Number of cells, those that overlap the span most, that count as the moment of a sentence. Default: 1
    pub top_k: usize,
    /// Cells of the own video that overlap the span by this much are no negatives. Default: 0.5
    pub negative_iou: f64,
    /// Other sentences of a video whose spans overlap by this much are no negatives. Default: 0.5
    pub sentence_iou: f64,
    /// How cells that are no negatives are kept out. Default: zeroed, as published
    pub excluded: Excluded,
    /// Added inside the logarithm of the second term. Default: 1e-6
    pub eps: f64,
    /// Weight of both terms beside the overlap's. Default: 0.05
    pub weight: f64,
    /// The last epoch with that weight. Default: never ends
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_epoch: Option<usize>,
    /// What the weight is multiplied by afterwards. Default: 0.01
    pub after_switch: f64,
}

impl Default for MutualMatching {
    fn default() -> Self {
        Self {
            margin: 0.4,
            tau: 0.1,
            top_k: 1,
            negative_iou: 0.5,
            sentence_iou: 0.5,
            excluded: Excluded::Zeroed,
            eps: 1e-6,
            weight: 0.05,
            switch_epoch: None,
            after_switch: 0.01,
        }
    }
}

/// How something is kept out of a denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excluded {
    /// Its cosine is set to 0, so that it still adds `exp(0) = 1`: what the released code does.
    Zeroed,
    /// It adds nothing: what the papers say.
    Removed,
}

/// What the terms are made from.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// Cosine of every sentence with every cell, `[sentences, videos, cells]`.
    pub cosines: &'a Tensor,
    /// Overlap of the cells of a sentence's own video with its span, `[sentences, cells]`.
    pub ious: &'a Tensor,
    /// The video of each sentence.
    pub video: &'a [usize],
    /// The span of each sentence.
    pub spans: &'a [NormSpan],
}

/// Which others a sentence or moment is compared with, when not with all.
#[derive(Debug, Clone)]
pub struct Reliable {
    /// `[sentences, sentences]`, 1 where the moment of the row is compared with the sentence of the column; 1 at itself.
    pub sentences: Tensor,
    /// `[sentences, videos]`, 1 where the sentence is compared with the video's cells. The own video always is.
    pub videos: Tensor,
    /// How the rest is kept out. When zeroed, all logits of a denominator are multiplied by the number of comparisons over
    /// that of reliable ones, as RMMN's released code does.
    pub excluded: Excluded,
}

/// The two terms of every sentence and each of its cells, `[sentences, top_k]`.
#[derive(Debug, Clone)]
pub struct MatchingTerms {
    /// From a moment to the sentences.
    pub to_sentences: Tensor,
    /// From a sentence to the moments.
    pub to_moments: Tensor,
}

impl MutualMatching {
    /// The weight of both terms in this pass.
    pub fn weight_in(&self, pass: &Pass) -> f64 {
        let switched = self.switch_epoch.is_some_and(|last| pass.epoch() > last);
        if switched { self.weight * self.after_switch } else { self.weight }
    }

    /// The two terms, compared with everything in the batch or only with what is `reliable`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn terms(&self, pairs: Pairs, reliable: Option<&Reliable>) -> Result<MatchingTerms> {
        let (sentences, videos, _) = pairs.cosines.dims3()?;
        let device = pairs.cosines.device();
        let cosines = self.of_moments(pairs)?;
        let itself = Tensor::eye(sentences, DType::F32, device)?.unsqueeze(1)?;
        let positive = (cosines.broadcast_mul(&itself)?.sum(2)? - self.margin)?; // [sentences, top_k]
        let logits = (&positive / self.tau)?;

        let mut counted = self.sentence_weights(pairs, device)?.unsqueeze(1)?;
        let (mut among, mut ratio) = (cosines, 1.0);
        if let Some(reliable) = reliable {
            let keep = reliable.sentences.unsqueeze(1)?;
            (among, counted) = exclude(&among, &counted, &keep, reliable.excluded)?;
            ratio = reliable.ratio((sentences * sentences) as f32, &reliable.sentences)?;
        }
        let among = (among.broadcast_sub(&(itself * self.margin)?)? * (ratio / self.tau))?;
        let to_sentences = (among.exp()?.broadcast_mul(&counted)?.sum(2)?.log()? - &logits)?;

        let own_video = one_video_each(pairs.video, videos, device)?;
        let other_videos = own_video.affine(-1.0, 1.0)?;
        let own = cells_of(pairs.cosines, &own_video)?;
        let (own, own_counted) =
            exclude(&own, &own.ones_like()?, &pairs.ious.lt(self.negative_iou)?.to_dtype(DType::F32)?, self.excluded)?;
        let (mut among, mut counted, mut ratio) = (pairs.cosines.clone(), other_videos.clone(), 1.0);
        if let Some(reliable) = reliable {
            let keep = (&reliable.videos * &other_videos)?;
            ratio = reliable.ratio((sentences * (videos - 1)) as f32, &keep)?;
            match reliable.excluded {
                Excluded::Zeroed => among = among.broadcast_mul(&keep.unsqueeze(2)?)?,
                Excluded::Removed => counted = keep,
            }
        }
        let sharpness = ratio / self.tau;
        let own = ((own * sharpness)?.exp()? * own_counted)?.sum(1)?;
        let others = ((among * sharpness)?.exp()?.sum(2)? * counted)?.sum(1)?;
        let itself = (positive * sharpness)?.exp()?;
        let all = (itself.broadcast_add(&(own + others)?.unsqueeze(1)?)? + self.eps)?;
        Ok(MatchingTerms { to_sentences, to_moments: (all.log()? - logits)? })
    }

    /// Cosine of the best cells of every sentence with every sentence, `[sentences, top_k, sentences]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn of_moments(&self, pairs: Pairs) -> Result<Tensor> {
        let (sentences, videos, cells) = pairs.cosines.dims3()?;
        let mut columns = Vec::with_capacity(sentences * self.top_k);
        for (video, ious) in pairs.video.iter().zip(pairs.ious.to_vec2::<f32>()?) {
            columns.extend(top_cells(&ious, self.top_k).iter().map(|cell| (video * cells + cell) as u32));
        }
        let columns = Tensor::new(columns, pairs.cosines.device())?;
        let all = pairs.cosines.reshape((sentences, videos * cells))?;
        all.index_select(&columns, 1)?.t()?.contiguous()?.reshape((sentences, (), sentences))
    }

    /// 0 for another sentence of the same video whose span is too much the same, `[sentences, sentences]`.
    fn sentence_weights(&self, pairs: Pairs, device: &Device) -> Result<Tensor> {
        let count = pairs.spans.len();
        let mut weights = vec![1f32; count * count];
        for a in 0..count {
            for b in (0..count).filter(|b| *b != a && pairs.video[*b] == pairs.video[a]) {
                if pairs.spans[a].iou_hull(pairs.spans[b]) >= self.sentence_iou {
                    weights[a * count + b] = 0.0;
                }
            }
        }
        Tensor::from_vec(weights, (count, count), device)
    }
}

impl Reliable {
    /// Comparisons over reliable ones, 1 where the rest is removed.
    fn ratio(&self, all: f32, kept: &Tensor) -> Result<f64> {
        match self.excluded {
            Excluded::Removed => Ok(1.0),
            Excluded::Zeroed => Ok(f64::from(all / kept.sum_all()?.to_scalar::<f32>()?.max(1.0))),
        }
    }
}

/// Keeps out where `keep` is 0: either the cosine or the weight becomes 0.
fn exclude(cosines: &Tensor, weights: &Tensor, keep: &Tensor, how: Excluded) -> Result<(Tensor, Tensor)> {
    match how {
        Excluded::Zeroed => Ok((cosines.broadcast_mul(keep)?, weights.clone())),
        Excluded::Removed => Ok((cosines.clone(), weights.broadcast_mul(keep)?)),
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    /// Two videos of two cells; sentences 0 and 1 ask of the first, 2 of the second.
    fn example() -> (Tensor, Tensor) {
        let cosines = [[[0.9f32, 0.1], [0.2, -0.3]], [[0.4, 0.5], [0.0, 0.1]], [[-0.2, 0.3], [0.6, 0.7]]];
        let ious = [[1f32, 0.2], [0.6, 0.8], [0.1, 0.9]];
        (Tensor::new(&cosines, &Device::Cpu).unwrap(), Tensor::new(&ious, &Device::Cpu).unwrap())
    }

    fn spans(of: [(f64, f64); 3]) -> Vec<NormSpan> {
        of.into_iter().map(|(start, end)| NormSpan::new(start, end).unwrap()).collect()
    }

    fn close(ours: &Tensor, row: usize, by_hand: f64) {
        let ours = f64::from(ours.to_vec2::<f32>().unwrap()[row][0]);
        assert!((ours - by_hand).abs() < 1e-4, "{ours} {by_hand}");
    }

    #[test]
    fn both_terms_are_right_by_hand() {
        let (cosines, ious) = example();
        let apart = spans([(0.0, 0.4), (0.5, 1.0), (0.0, 1.0)]);
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 0, 1], spans: &apart };
        let e = |cosine: f64| (cosine / 0.1).exp();
        let zeroed = MutualMatching::default().terms(pairs, None).unwrap();
        // The moment of sentence 0 is cell 0 of video 0: cosines 0.9 (less the margin), 0.4 and -0.2.
        close(&zeroed.to_sentences, 0, (e(0.5) + e(0.4) + e(-0.2)).ln() - 5.0);
        // Cell 0 overlaps too much and counts as a cosine of 0; cell 1 is a negative.
        close(&zeroed.to_moments, 0, (e(0.5) + 1.0 + e(0.1) + e(0.2) + e(-0.3) + 1e-6).ln() - 5.0);
        let removed = MutualMatching { excluded: Excluded::Removed, ..MutualMatching::default() };
        let removed = removed.terms(pairs, None).unwrap();
        close(&removed.to_moments, 0, (e(0.5) + e(0.1) + e(0.2) + e(-0.3) + 1e-6).ln() - 5.0);
    }

    #[test]
    fn sentences_of_one_video_with_much_the_same_span_are_no_negatives() {
        let (cosines, ious) = example();
        let same = spans([(0.0, 0.4), (0.0, 0.5), (0.0, 0.4)]);
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 0, 1], spans: &same };
        let terms = MutualMatching::default().terms(pairs, None).unwrap();
        let e = |cosine: f64| (cosine / 0.1).exp();
        // Sentence 2 has the same span as 0, but in another video.
        close(&terms.to_sentences, 0, (e(0.5) + e(-0.2)).ln() - 5.0);
    }

    #[test]
    fn unreliable_ones_are_removed_or_zeroed() {
        let (cosines, ious) = example();
        let apart = spans([(0.0, 0.4), (0.5, 1.0), (0.0, 1.0)]);
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 0, 1], spans: &apart };
        let e = |cosine: f64| (cosine / 0.1).exp();
        // Sentence 0 may describe something in video 1, and sentence 2 something in video 0.
        let mut reliable = Reliable {
            sentences: Tensor::new(&[[1f32, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], &Device::Cpu).unwrap(),
            videos: Tensor::new(&[[1f32, 0.0], [1.0, 1.0], [0.0, 1.0]], &Device::Cpu).unwrap(),
            excluded: Excluded::Removed,
        };
        let terms = MutualMatching::default().terms(pairs, Some(&reliable)).unwrap();
        close(&terms.to_sentences, 0, (e(0.5) + e(0.4)).ln() - 5.0);
        close(&terms.to_moments, 0, (e(0.5) + 1.0 + e(0.1) + 1e-6).ln() - 5.0);
        reliable.excluded = Excluded::Zeroed;
        let terms = MutualMatching::default().terms(pairs, Some(&reliable)).unwrap();
        // 6 of 9 pairs of sentences and 1 of 3 other videos are kept.
        let ratio = 9.0 / 6.0;
        close(&terms.to_sentences, 0, (e(0.5 * ratio) + e(0.4 * ratio) + 1.0).ln() - 5.0);
        let ratio = 3.0;
        close(&terms.to_moments, 0, (e(0.5 * ratio) + 1.0 + e(0.1 * ratio) + 2.0).ln() - 5.0);
    }

    #[test]
    fn the_weight_falls_after_the_switch_epoch() {
        let matching = MutualMatching { switch_epoch: Some(7), ..MutualMatching::default() };
        let at = |epoch| matching.weight_in(&Pass::training(0, epoch, Rng::new(0)));
        assert_eq!((at(7), at(8)), (0.05, 0.05 * 0.01));
    }
}
