//! Which proposal stands for which sentence.

use candle_core::D;
use cuemark_tensor::functional::softmax;

use super::{Layer, Lvtr};
use crate::Result;

/// Pairs of a proposal and a sentence, ordered by proposal.
pub(super) type Matching = Vec<(usize, usize)>;

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
            let mut pairs: Matching = assign(&costs).into_iter().enumerate().map(|(s, p)| (p, s)).collect();
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

/// As [`generalised_overlap`](super::losses::generalised_overlap), of one pair.
fn overlap_of(a: [f64; 2], b: [f64; 2]) -> f64 {
    let bounds = |[centre, width]: [f64; 2]| (centre - width / 2.0, centre + width / 2.0);
    let ((start, end), (other_start, other_end)) = (bounds(a), bounds(b));
    let both = (end.min(other_end) - start.max(other_start)).max(0.0);
    let union = (end - start) + (other_end - other_start) - both;
    let hull = end.max(other_end) - start.min(other_start);
    if union > 0.0 && hull > 0.0 { both / union - (hull - union) / hull } else { 0.0 }
}

/// The cheapest column for every row, no column twice (the Hungarian algorithm by shortest augmenting paths).
/// Rows beyond the number of columns are left out.
fn assign(costs: &[Vec<f64>]) -> Vec<usize> {
    let columns = costs.first().map_or(0, Vec::len);
    let rows = costs.len().min(columns);
    // Columns are counted from 1; column 0 holds the row that is being placed.
    let (mut row_price, mut column_price) = (vec![0.0; rows + 1], vec![0.0; columns + 1]);
    let mut row_of = vec![0; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut least = vec![f64::INFINITY; columns + 1];
        let mut from = vec![0; columns + 1];
        let mut used = vec![false; columns + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            used[column] = true;
            let current = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for other in (1..=columns).filter(|other| !used[*other]) {
                let reduced = costs[current - 1][other - 1] - row_price[current] - column_price[other];
                if reduced < least[other] {
                    (least[other], from[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            if next == 0 {
                break; // only costs that are no numbers lead here
            }
            for other in 0..=columns {
                if used[other] {
                    row_price[row_of[other]] += step;
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    let mut placed = vec![0; rows];
    (1..=columns).filter(|column| row_of[*column] != 0).for_each(|column| placed[row_of[column] - 1] = column - 1);
    placed
}

#[cfg(test)]
mod tests {
    use candle_core::Tensor;
    use cuemark_core::Rng;
    use cuemark_tensor::Device;

    use super::super::losses::generalised_overlap;
    use super::*;

    #[test]
    fn the_matching_is_the_cheapest_of_all() {
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let (rows, columns) = (1 + rng.below(3), 3 + rng.below(3));
            let costs: Vec<Vec<f64>> = (0..rows).map(|_| (0..columns).map(|_| rng.normal()).collect()).collect();
            let placed = assign(&costs);
            let cost: f64 = placed.iter().enumerate().map(|(row, column)| costs[row][*column]).sum();
            let mut best = f64::INFINITY;
            for code in 0..columns.pow(rows as u32) {
                let choice: Vec<usize> = (0..rows).map(|row| code / columns.pow(row as u32) % columns).collect();
                let distinct = (0..rows).all(|row| !choice[..row].contains(&choice[row]));
                if distinct {
                    best = best.min(choice.iter().enumerate().map(|(row, column)| costs[row][*column]).sum());
                }
            }
            assert!((cost - best).abs() < 1e-9, "{costs:?}: {placed:?}");
        }
        assert!(assign(&[]).is_empty());
    }

    #[test]
    fn overlap_is_one_with_itself_and_negative_apart() {
        assert!((overlap_of([0.5, 0.2], [0.5, 0.2]) - 1.0).abs() < 1e-12);
        assert!(overlap_of([0.2, 0.2], [0.8, 0.2]) < 0.0);
        let tensor = |pair: [f32; 2]| Tensor::new(&[pair], &Device::Cpu).unwrap();
        let same = generalised_overlap(&tensor([0.2, 0.2]), &tensor([0.8, 0.2])).unwrap().to_vec1::<f32>().unwrap();
        assert!((f64::from(same[0]) - overlap_of([0.2, 0.2], [0.8, 0.2])).abs() < 1e-6);
    }

    #[test]
    fn proposals_are_shared_out_in_blocks() {
        assert_eq!(block_labels(12, 3), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(block_labels(12, 2), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(block_labels(5, 3), [0, 0, 1, 1, 2]);
    }
}
