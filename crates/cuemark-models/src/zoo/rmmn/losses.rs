//! The matching loss over reliable and over sampled negatives.

use candle_core::{DType, Tensor};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softplus;

use super::{CARD, Form, Forward, Rmmn};
use crate::layers::{cells_of, one_video_each};
use crate::losses::{Excluded, MatchingTerms, MutualMatching, Pairs, Reliable};
use crate::{Batch, ModelError, Negatives, Result};

impl Rmmn {
    /// The first stage: every pair of the batch that is reliable.
    pub(super) fn filtered(&self, batch: &Batch, pass: &Pass) -> Result<[Tensor; 3]> {
        let similarity = batch.similarity.as_ref();
        let similarity =
            similarity.ok_or(ModelError::Missing { model: CARD.name, what: "the similarity of queries" })?;
        let forward = self.forward(batch, pass)?;
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        let pairs = Pairs { cosines: &forward.cosines, ious: &forward.ious, video, spans };
        let reliable = reliable(similarity, video, self.config.threshold, self.config.form)?;
        let terms = self.config.matching.terms(pairs, Some(&reliable))?;
        let logits = cells_of(&forward.overlap_logits, &forward.own_video)?;
        let overlap = self.config.targets.loss(&logits, &forward.ious)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
    }

    /// The second stage: every query that has sampled negatives, against those.
    pub(super) fn hard(&self, batch: &Batch, pass: &Pass) -> Result<[Tensor; 3]> {
        let items = batch.negatives.as_deref().filter(|items| !items.is_empty());
        let items =
            items.ok_or(ModelError::Missing { model: CARD.name, what: "sampled negatives in its second stage" })?;
        let forward = self.forward(batch, pass)?;
        let (video, spans) = (&batch.queries.video, &batch.targets(CARD.name)?.spans);
        let pairs = Pairs { cosines: &forward.cosines, ious: &forward.ious, video, spans };
        let terms = hard_terms(&self.config.matching, pairs, items, self.config.form)?;
        let overlap = self.hard_overlap(&forward, items, video)?;
        Ok([overlap, terms.to_sentences.mean_all()?, terms.to_moments.mean_all()?])
    }

    /// The overlap's loss of the true pairs, and with targets of 0 the mean of that of the sampled ones.
    fn hard_overlap(&self, forward: &Forward, items: &[Negatives], video: &[usize]) -> Result<Tensor> {
        let device = forward.ious.device();
        let asked = Tensor::new(items.iter().map(|item| item.query as u32).collect::<Vec<_>>(), device)?;
        let own = cells_of(&forward.overlap_logits, &forward.own_video)?.index_select(&asked, 0)?;
        let positive = self.config.targets.loss(&own, &forward.ious.index_select(&asked, 0)?)?;
        let (queries, videos, _) = forward.overlap_logits.dims3()?;
        let mut shares = vec![0f32; queries * videos];
        for item in items {
            let own = video[item.query];
            let maps = item.videos.iter().map(|other| (item.query, *other));
            let maps = maps.chain(item.queries.iter().map(|other| (*other, own)));
            let count = (item.videos.len() + item.queries.len()) as f32;
            for (query, video) in maps {
                shares[query * videos + video] += 1.0 / (count * items.len() as f32);
            }
        }
        let shares = Tensor::from_vec(shares, (queries, videos), device)?;
        let negative = (softplus(&forward.overlap_logits)?.mean(2)? * shares)?.sum_all()?;
        Ok((positive + negative)?)
    }
}

/// Which pairs of the batch are reliable negatives by `similarity [queries, videos]`.
pub(super) fn reliable(similarity: &Tensor, video: &[usize], threshold: f64, form: Form) -> Result<Reliable> {
    let videos = similarity.dim(1)?;
    let own_video = one_video_each(video, videos, similarity.device())?;
    // The own video is never filtered, whatever the similarity says of it.
    let videos = similarity.le(threshold)?.to_dtype(DType::F32)?.maximum(&own_video)?;
    // For the moment of a query: is each other query a negative of that moment's video?
    let sentences = own_video.times(&videos.t()?.contiguous()?)?;
    let excluded = if form == Form::Released { Excluded::Zeroed } else { Excluded::Removed };
    Ok(Reliable { sentences, videos, excluded })
}

/// The two contrastive terms of the queries that have negatives, each against its own, `[items, top_k]`.
pub(super) fn hard_terms(
    matching: &MutualMatching,
    pairs: Pairs,
    items: &[Negatives],
    form: Form,
) -> Result<MatchingTerms> {
    let (queries, videos, _) = pairs.cosines.dims3()?;
    let device = pairs.cosines.device();
    // Every query is compared with itself alone until an item names more: a row of zeros would have no logarithm.
    let mut with_sentences: Vec<f32> = (0..queries * queries).map(|n| f32::from(n % (queries + 1) == 0)).collect();
    let mut with_videos = vec![0f32; queries * videos];
    for item in items {
        item.queries.iter().for_each(|other| with_sentences[item.query * queries + other] = 1.0);
        item.videos.iter().for_each(|other| with_videos[item.query * videos + other] = 1.0);
    }
    let reliable = Reliable {
        sentences: Tensor::from_vec(with_sentences, (queries, queries), device)?,
        videos: Tensor::from_vec(with_videos, (queries, videos), device)?,
        excluded: Excluded::Removed,
    };
    let terms = matching.terms(pairs, Some(&reliable))?;
    let asked = Tensor::new(items.iter().map(|item| item.query as u32).collect::<Vec<_>>(), device)?;
    let to_sentences = match form {
        Form::Paper => terms.to_sentences.index_select(&asked, 0)?,
        Form::Released => wandering_margin(matching, &matching.of_moments(pairs)?, items)?,
    };
    Ok(MatchingTerms { to_sentences, to_moments: terms.to_moments.index_select(&asked, 0)? })
}

/// The released comparison of a moment with sampled sentences: the mean over all of them, the positive included, of the
/// term with the margin at that one.
fn wandering_margin(matching: &MutualMatching, cosines: &Tensor, items: &[Negatives]) -> Result<Tensor> {
    let terms = items.iter().map(|item| {
        let columns = std::iter::once(&item.query).chain(&item.queries).map(|query| *query as u32);
        let columns = Tensor::new(columns.collect::<Vec<_>>(), cosines.device())?;
        let row = cosines.get(item.query)?.contiguous()?.index_select(&columns, 1)?; // [top_k, sentences]
        let margins = (Tensor::eye(row.dim(1)?, DType::F32, row.device())? * matching.margin)?;
        let logits = (row.unsqueeze(1)?.broadcast_sub(&margins)? / matching.tau)?; // [top_k, margin at, sentences]
        let positive = ((row.narrow(1, 0, 1)?.squeeze(1)? - matching.margin)? / matching.tau)?;
        logits.exp()?.sum(2)?.log()?.mean(1)? - positive
    });
    Ok(Tensor::stack(&terms.collect::<candle_core::Result<Vec<_>>>()?, 0)?)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;
    use crate::testing::gap;

    #[test]
    fn hard_terms_are_those_of_a_batch_with_nothing_else_in_it() {
        let cosines = Tensor::arange(0f32, 24.0, &Device::Cpu).unwrap().reshape((3, 2, 4)).unwrap().sin().unwrap();
        let ious = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap().reshape((3, 4)).unwrap().cos().unwrap();
        let spans = [cuemark_core::NormSpan::new(0.0, 0.5).unwrap(); 3];
        let matching = MutualMatching::default();
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 0, 1], spans: &spans };
        let item = Negatives { query: 0, videos: vec![1], queries: vec![2] };
        let hard = hard_terms(&matching, pairs, &[item], Form::Paper).unwrap();
        let rows = Tensor::new(&[0u32, 2], &Device::Cpu).unwrap();
        let (cosines, ious) = (cosines.index_select(&rows, 0).unwrap(), ious.index_select(&rows, 0).unwrap());
        let pairs = Pairs { cosines: &cosines, ious: &ious, video: &[0, 1], spans: &spans[..2] };
        let alone = matching.terms(pairs, None).unwrap();
        assert!(gap(&hard.to_sentences, &alone.to_sentences.narrow(0, 0, 1).unwrap()) < 1e-5);
        assert!(gap(&hard.to_moments, &alone.to_moments.narrow(0, 0, 1).unwrap()) < 1e-5);
    }
}
