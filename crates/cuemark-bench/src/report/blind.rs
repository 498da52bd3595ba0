//! The baselines that never look at a video, scored like everybody else.

use cuemark_core::{Progress, Truth};
use cuemark_protocols::baselines::{BASELINES, Needs, Training};

use super::about::{About, Answerer};
use super::evaluated::Evaluated;
use super::measure::Measure;
use crate::Result;

/// Answers that a baseline draws for each query, where it draws.
const ANSWERS: usize = 5;

/// Scores every baseline on `truths` under the place that `about` names; without training queries only those that need none.
/// `progress` counts queries and resamples.
///
/// # Errors
/// When a query is about no single video or a duration is not known.
pub fn score_baselines(
    about: &About,
    truths: &[Truth],
    train: &[Truth],
    measure: &Measure,
    seed: u64,
    progress: &Progress,
) -> Result<Vec<Evaluated>> {
    let fitting = BASELINES.iter().filter(|card| card.needs == Needs::Nothing || !train.is_empty());
    let scored = fitting.map(|card| {
        let baseline = card.fit(&Training::of(train))?;
        let predictions = baseline.predict(truths, ANSWERS, seed)?;
        let about = About {
            model: card.name.to_owned(),
            kind: Answerer::Baseline,
            seed: Some(seed),
            dataset: about.dataset.clone(),
            protocol: about.protocol.clone(),
            split: about.split.clone(),
            ..About::default()
        };
        measure.run(about, truths, &predictions, progress)
    });
    scored.collect()
}
