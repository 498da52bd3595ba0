//! Bias-based, given the verb: the densest place of the training moments whose query has the same first verb.
//!
//! Queries without a verb, and verbs that training never saw, get the densest place of all.

use std::collections::BTreeMap;

use cuemark_core::{NormSpan, Predictions, Truth};
use rayon::prelude::*;

use super::{Answering, Baseline, BaselineCard, Needs, Training, VerbOf, answer_each, in_order, training_density};
use crate::Result;
use crate::kde::Kde;
use crate::pairs::pairs;

/// How it is listed.
pub(super) static CARD: BaselineCard = BaselineCard {
    name: "bias-verb",
    summary: "the densest place of the training moments whose query has the same first verb",
    needs: Needs::TrainingMoments,
    answers: Answering::Fixed,
    fit: |training| Ok(Box::new(BiasVerb::fit(training)?)),
};

struct BiasVerb<'a> {
    first_verb: VerbOf<'a>,
    mode_of: BTreeMap<String, NormSpan>,
    mode: NormSpan,
}

impl<'a> BiasVerb<'a> {
    fn fit(training: &Training<'a>) -> Result<Self> {
        let mode = training_density(training.truths)?.mode();
        let mut spans_of: BTreeMap<String, Vec<NormSpan>> = BTreeMap::new();
        for pair in pairs(training.truths)? {
            if let Some(verb) = (training.first_verb)(&pair.truth.query.text) {
                spans_of.entry(verb).or_default().push(pair.span.clipped());
            }
        }
        let modes = spans_of.into_par_iter().map(|(verb, spans)| Ok((verb, Kde::fit(&spans)?.mode())));
        Ok(Self { first_verb: training.first_verb, mode_of: modes.collect::<Result<_>>()?, mode })
    }
}

impl Baseline for BiasVerb<'_> {
    fn predict(&self, queries: &[Truth], _answers: usize, _seed: u64) -> Result<Predictions> {
        answer_each(queries, |truth| {
            let verb = (self.first_verb)(&truth.query.text);
            in_order([verb.and_then(|verb| self.mode_of.get(&verb)).copied().unwrap_or(self.mode)])
        })
    }
}
