//! What a run writes into its log and says on the way.

use cuemark_core::text::{percent, thousands};
use indexmap::IndexMap;
use serde::Serialize;

use crate::{CutQueries, OutOfReach};

/// What a run trains, as it is known before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Begun {
    /// Trainable parameters.
    pub parameters: usize,
    /// Training examples.
    pub examples: usize,
    /// Training moments that the model cannot meet.
    pub out_of_reach: OutOfReach,
    /// Training queries of which the model reads only the beginning.
    pub cut: CutQueries,
    /// Steps of the whole run.
    pub steps: usize,
}

impl Begun {
    /// What a person should read before the first step.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { parameters, examples, out_of_reach, cut, steps } = *self;
        let [parameters, examples, steps] = [parameters, examples, steps].map(thousands);
        let mut lines = vec![format!("{parameters} parameters, {examples} examples, {steps} steps")];
        if out_of_reach.past_the_end + out_of_reach.too_short > 0 {
            lines.push(format!(
                "out of reach: {} of {} moments begin past the clips that the model sees (left out), {} are shorter than half a clip",
                out_of_reach.past_the_end, out_of_reach.moments, out_of_reach.too_short
            ));
        }
        lines.extend(cut.line());
        lines
    }
}

/// The score of the validation split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated {
    /// Steps done.
    pub step: usize,
    /// Passes over the training split, of this stage.
    pub epoch: f64,
    /// The split.
    pub split: String,
    /// Its metrics, fractions.
    pub metrics: IndexMap<String, f64>,
    /// Their mean.
    pub score: f64,
    /// Whether it is the best so far.
    pub best: bool,
}

impl Evaluated {
    /// `epoch 1.00, val: R@1,IoU=0.5 41.20 (best)`
    pub(crate) fn line(&self) -> String {
        let metrics: Vec<String> =
            self.metrics.iter().map(|(name, value)| format!("{name} {}", percent(*value))).collect();
        let mark = if self.best { " (best)" } else { "" };
        format!("epoch {:.2}, {}: {}{mark}", self.epoch, self.split, metrics.join(", "))
    }
}
