//! Bias-based, concentrated: the densest of a hundred spans drawn from the density of the training moments.
//!
//! The published figures lie far from plain draws and near the mode; this is what lies between. Draws are compared on the
//! binned density, whose error is a millionth of a kernel's peak.

use cuemark_core::{NormSpan, Predictions, Rng, Truth};

use super::{Answering, Baseline, BaselineCard, Needs, answer_each, training_density};
use crate::Result;
use crate::kde::{BinnedKde, Kde};

/// Spans drawn for each query, of which the densest are answers.
const DRAWS: usize = 100;
/// Nodes along one side of the grid on which draws are compared.
const CELLS: usize = 1024;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "bias-density",
    summary: "the densest of 100 spans drawn from the density of the training moments",
    needs: Needs::TrainingMoments,
    answers: Answering::Drawn,
    fit: |training| {
        let density = training_density(training.truths)?;
        let grid = BinnedKde::fit(density.points(), CELLS)?;
        Ok(Box::new(BiasDensity { density, grid }))
    },
};

struct BiasDensity {
    density: Kde,
    grid: BinnedKde,
}

impl Baseline for BiasDensity {
    fn predict(&self, queries: &[Truth], answers: usize, seed: u64) -> Result<Predictions> {
        let mut rng = Rng::stream(seed, CARD.name);
        answer_each(queries, |_| {
            let draw = |_| {
                let span = self.density.sample(&mut rng);
                (span, self.grid.density_at(span))
            };
            let mut ranked: Vec<(NormSpan, f64)> = (0..DRAWS.max(answers)).map(draw).collect();
            ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            ranked.truncate(answers);
            ranked
        })
    }
}
