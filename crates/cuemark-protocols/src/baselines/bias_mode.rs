//! Bias-based, without chance: the densest place of the training moments, for every query.

use cuemark_core::{NormSpan, Predictions, Truth};

use super::{Answers, Baseline, BaselineCard, Needs, answer_each, in_order, training_density};
use crate::Result;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "bias-mode",
    summary: "the densest place of the training moments",
    needs: Needs::TrainingMoments,
    answers: Answers::Fixed,
    fit: |training| Ok(Box::new(BiasMode { mode: training_density(training.truths)?.mode() })),
};

struct BiasMode {
    mode: NormSpan,
}

impl Baseline for BiasMode {
    fn predict(&self, queries: &[Truth], _answers: usize, _seed: u64) -> Result<Predictions> {
        answer_each(queries, |_| in_order([self.mode]))
    }
}
