//! Bias-based, literally: spans drawn from the density of the training moments, ranked as drawn.
//! Yuan et al., "A Closer Look at Temporal Sentence Grounding in Videos: Dataset and Metric", 2021.

use cuemark_core::{Predictions, Rng, Truth};

use super::{Answering, Baseline, BaselineCard, Needs, answer_each, in_order, training_density};
use crate::Result;
use crate::kde::Kde;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "bias-draw",
    summary: "spans drawn from the density of the training moments, in the order drawn",
    needs: Needs::TrainingMoments,
    answers: Answering::Drawn,
    fit: |training| Ok(Box::new(BiasDraw { density: training_density(training.truths)? })),
};

struct BiasDraw {
    density: Kde,
}

impl Baseline for BiasDraw {
    fn predict(&self, queries: &[Truth], answers: usize, seed: u64) -> Result<Predictions> {
        let mut rng = Rng::stream(seed, CARD.name);
        answer_each(queries, |_| in_order((0..answers).map(|_| self.density.sample(&mut rng))))
    }
}
