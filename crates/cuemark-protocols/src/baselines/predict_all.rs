//! PredictAll: the whole video, always. A query's IoU is then the share of the video that its moment covers.

use cuemark_core::{NormSpan, Predictions, Truth};

use super::{Answering, Baseline, BaselineCard, Needs, answer_each, in_order};
use crate::Result;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "predict-all",
    summary: "the whole video",
    needs: Needs::Nothing,
    answers: Answering::Fixed,
    fit: |_| Ok(Box::new(PredictAll)),
};

struct PredictAll;

impl Baseline for PredictAll {
    fn predict(&self, queries: &[Truth], _answers: usize, _seed: u64) -> Result<Predictions> {
        answer_each(queries, |_| in_order(NormSpan::new(0.0, 1.0)))
    }
}
