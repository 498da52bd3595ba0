//! A true pair against one drawn from the rest of the batch, easy or hard (XML, ReLoCLNet, MS-SL).

use candle_core::{Result, Tensor};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::softplus;
use serde::{Deserialize, Serialize};

/// How a true pair is told from one that is not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrawnNegatives {
    /// How the two scores are compared. Default: hinge
    pub compare: RankingLoss,
    /// How much better the true pair must score. Default: 0.1
    pub margin: f64,
    /// The epoch from which only the hardest are drawn. Default: 20
    pub hard_from: usize,
    /// How many the hardest are. Default: 20
    pub hard_pool: usize,
}

/// How the score of a true pair and that of another are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankingLoss {
    /// `max(0, margin + other - true)`. Default.
    #[default]
    Hinge,
    /// `log(1 + exp(other - true))`.
    Lse,
}

impl Default for DrawnNegatives {
    fn default() -> Self {
        Self { compare: RankingLoss::Hinge, margin: 0.1, hard_from: 20, hard_pool: 20 }
    }
}

impl DrawnNegatives {
    /// For each of `rows` true pairs a rank among its `others`, from 1 (the hardest); the hardest of all when not training.
    pub fn draw_ranks(&self, rows: usize, others: usize, pass: &Pass) -> Vec<usize> {
        let reach = if self.is_hard(pass) { self.hard_pool.clamp(1, others.max(1)) } else { others };
        pass.draw(|rng| (0..rows).map(|_| 1 + rng.below(reach)).collect()).unwrap_or_else(|| vec![1; rows])
    }

    /// Whether only the hardest are drawn in this pass.
    pub fn is_hard(&self, pass: &Pass) -> bool {
        pass.epoch() >= self.hard_from
    }

    /// The loss of each row, `[rows]`; 0 where nothing can be drawn.
    ///
    /// `positives[row]` are the columns that are true, the first of them the one compared; `ranks[row]` counts the others
    /// from 1 in falling order of their scores and is taken around when there are fewer.
    ///
    /// # Shapes
    /// - scores `[rows, columns]`; gradients flow through the two scores compared
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn loss(&self, scores: &Tensor, positives: &[Vec<usize>], ranks: &[usize]) -> Result<Tensor> {
        let (mut own, mut other, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (drawn, positives) in Self::others(scores, positives, ranks)?.into_iter().zip(positives) {
            let first = positives.first().copied().unwrap_or(0) as u32;
            own.push(first);
            other.push(drawn.map_or(first, |column| column as u32));
            counts.push(if drawn.is_some() { 1f32 } else { 0.0 });
        }
        let rows = own.len();
        let pick =
            |columns: Vec<u32>| scores.gather(&Tensor::from_vec(columns, (rows, 1), scores.device())?, 1)?.squeeze(1);
        let losses = self.compare(&pick(own)?, &pick(other)?)?;
        losses.mul(&Tensor::from_vec(counts, rows, scores.device())?)
    }

    /// For each row the column at its rank of those that are not true; `None` where all are. See [`DrawnNegatives::loss`].
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn others(scores: &Tensor, positives: &[Vec<usize>], ranks: &[usize]) -> Result<Vec<Option<usize>>> {
        let rows = scores.detach().to_vec2::<f32>()?;
        let rows = rows.iter().zip(positives).zip(ranks);
        Ok(rows.map(|((row, positives), rank)| ranked_others(row, positives, *rank)).collect())
    }

    /// Mean losses of the rows and of the columns of a square of scores; `positives` and `ranks` of rows, then of columns.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn both_ways(
        &self,
        scores: &Tensor,
        positives: [&[Vec<usize>]; 2],
        ranks: [&[usize]; 2],
    ) -> Result<(Tensor, Tensor)> {
        let rows = self.loss(scores, positives[0], ranks[0])?.mean_all()?;
        let columns = self.loss(&scores.t()?.contiguous()?, positives[1], ranks[1])?.mean_all()?;
        Ok((rows, columns))
    }

    /// The loss of scores of true pairs against those of others.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn compare(&self, own: &Tensor, other: &Tensor) -> Result<Tensor> {
        let gap = (other - own)?;
        match self.compare {
            RankingLoss::Hinge => (gap + self.margin)?.relu(),
            RankingLoss::Lse => softplus(&gap),
        }
    }
}

/// The column at `rank` (from 1) of the columns that are not true, by falling score; equal scores keep their order.
fn ranked_others(row: &[f32], positives: &[usize], rank: usize) -> Option<usize> {
    let mut others: Vec<usize> = (0..row.len()).filter(|column| !positives.contains(column)).collect();
    others.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
    let place = rank.saturating_sub(1).checked_rem(others.len())?;
    others.get(place).copied()
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;
    use cuemark_tensor::Device;

    use super::*;

    #[test]
    fn the_loss_is_right_by_hand() {
        let scores = Tensor::new(&[[0.5f32, 0.45, 0.1], [0.9, 0.2, 0.3], [0.0, 0.0, 1.0]], &Device::Cpu).unwrap();
        let own = [vec![0], vec![1], vec![2]];
        let losses = DrawnNegatives::default().loss(&scores, &own, &[1, 2, 1]).unwrap().to_vec1::<f32>().unwrap();
        for (ours, by_hand) in losses.iter().zip([0.05, 0.2, 0.0]) {
            assert!((ours - by_hand).abs() < 1e-6, "{losses:?}");
        }
    }

    #[test]
    fn true_pairs_are_never_drawn_and_a_row_of_them_costs_nothing() {
        let scores = Tensor::new(&[[0.5f32, 0.9, 0.1], [0.9, 0.2, 0.3]], &Device::Cpu).unwrap();
        let positives = [vec![0, 1], vec![1, 0, 2]];
        let losses = DrawnNegatives::default().loss(&scores, &positives, &[1, 1]).unwrap();
        assert_eq!(losses.to_vec1::<f32>().unwrap(), [0.0, 0.0]);
    }

    #[test]
    fn late_epochs_draw_from_the_hardest_only() {
        let negatives = DrawnNegatives { hard_pool: 2, ..DrawnNegatives::default() };
        let largest = |epoch| {
            let pass = Pass::training(0, epoch, Rng::new(1));
            negatives.draw_ranks(200, 9, &pass).into_iter().max().unwrap()
        };
        assert_eq!((largest(19), largest(20)), (9, 2));
    }
}
