//! Which proposal stands for which sentence.

use candle_core::D;
use cuemark_tensor::functional::softmax;

use super::{Layer, Lvtr};
use crate::Result;
use crate::losses::{assign, overlap_of};

/// Pairs of a proposal and a sentence, ordered by proposal.
pub(super) type Matching = crate::losses::Matching;

impl Lvtr {
    /// The cheapest one-to-one matching of every group's sentences to its proposals.
    pub(super) fn matchings(&self, layer: &Layer, truth: &[Vec<[f32; 2]>]) -> Result<Vec<Matching>> {
        let spans = layer.spans.detach().to_vec3::<f32>()?;
        let shares = softmax(&layer.logits.detach(), D::Minus1)?.to_vec3::<f32>()?;
        let cost = |span: &[f32], wanted: &[f32; 2], share: f32| {
            let distance = f64::from((span[0] - wanted[0]).abs() + (span[1] - wanted[1]).abs());
            let overlap = overlap_of([span[0], span[1]].map(f64::from), wanted.map(f64::from));
            self.config.span_cost * distance
                - self.config.overlap_cost * overlap
                - self.config.label_cost * f64::from(share)
        };
        let mut matchings = Vec::with_capacity(truth.len());
        for ((spans, shares), truth) in spans.iter().zip(&shares).zip(truth) {
            let of_sentence = |(sentence, wanted): (usize, &[f32; 2])| {
                let shares = shares.iter().map(|shares| shares.get(sentence).copied().unwrap_or_default());
                spans.iter().zip(shares).map(|(span, share)| cost(span, wanted, share)).collect()
            };
            let costs: Vec<Vec<f64>> = truth.iter().enumerate().map(of_sentence).collect();
            let mut pairs: Matching = assign(&costs).into_iter().map(|(s, p)| (p, s)).collect();
            pairs.sort_unstable();
            matchings.push(pairs);
        }
        Ok(matchings)
    }
}

/// Proposals shared out in equal blocks, one per sentence; the last may be shorter.
pub(super) fn block_labels(proposals: usize, sentences: usize) -> Vec<u32> {
    let block = proposals.div_ceil(sentences.max(1)).max(1);
    (0..proposals).map(|proposal| (proposal / block) as u32).collect()
}

pub(super) fn matched_labels(matching: &Matching, proposals: usize, sentences: usize) -> Vec<u32> {
    let mut labels = vec![sentences.saturating_sub(1) as u32; proposals];
    matching.iter().for_each(|(proposal, sentence)| labels[*proposal] = *sentence as u32);
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_shared_out_in_blocks() {
        assert_eq!(block_labels(12, 3), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(block_labels(12, 2), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(block_labels(5, 3), [0, 0, 1, 1, 2]);
    }
}
