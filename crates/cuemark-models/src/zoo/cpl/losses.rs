//! What training makes smaller, and what grows with the epochs.

use candle_core::Tensor;
use cuemark_tensor::MatrixProduct as _;

use super::{Cpl, Guess, Masks};
use crate::Result;

/// The parts of the loss.
pub(super) struct Losses {
    pub(super) reconstruction: Tensor,
    pub(super) whole: Tensor,
    pub(super) left: Tensor,
    pub(super) right: Tensor,
    pub(super) diversity: Tensor,
}

impl Cpl {
    pub(super) fn growth(&self, epoch: usize) -> f64 {
        (epoch as f64 / self.config.full_epoch.max(1) as f64).min(1.0).powf(self.config.gamma)
    }

    pub(super) fn losses(&self, masks: &Masks, covered: &Guess, whole: &Guess, sides: [&Guess; 2]) -> Result<Losses> {
        let proposals = self.config.proposals;
        let covered = covered.badness.reshape(((), proposals))?;
        let best = covered.argmin_keepdim(1)?;
        let pick = |badness: &Tensor| badness.reshape(((), proposals))?.gather(&best, 1)?.squeeze(1);
        let best_badness = pick(&covered)?;
        let hinge = |other: &Tensor, margin: f64| -> Result<Tensor> {
            Ok(((&best_badness - other)? + margin)?.relu()?.mean_all()?)
        };
        let [left, right] = sides.map(|side| hinge(&pick(&side.badness)?, self.config.side_margin));
        let reconstruction = ((best_badness.mean_all()? + whole.badness.mean_all()?)? / 2.0)?;
        let shares = masks.covered.broadcast_div(&masks.covered.sum_keepdim(1)?)?;
        let shares = shares.reshape(((), proposals, masks.covered.dim(1)?))?;
        let alike = shares.times(&shares.t()?.contiguous()?)?;
        let wanted = (Tensor::eye(proposals, alike.dtype(), alike.device())? * self.config.lambda)?;
        Ok(Losses {
            reconstruction,
            whole: hinge(&whole.badness, self.config.whole_margin)?,
            left: left?,
            right: right?,
            diversity: alike.broadcast_sub(&wanted)?.sqr()?.flatten_from(1)?.sum(1)?.mean_all()?,
        })
    }

    pub(super) fn ranking_and_diversity(&self, losses: &Losses) -> Result<Tensor> {
        let rank = ((&losses.whole + &losses.left)? + &losses.right)?;
        Ok(((rank * self.config.rank_weight)? + (&losses.diversity * self.config.diversity_weight)?)?)
    }
}
