//! Judging weights on the way: the validation split is answered and scored as anybody's predictions would be.

use std::sync::Arc;

use cuemark_core::{Predictions, Progress, Rng, Split, Task, Truth};
use cuemark_features::FeatureVariant;
use cuemark_metrics::{MetricName, Overrides, Plan, evaluate};
use cuemark_models::Input;
use indexmap::IndexMap;

use crate::footage::Footage;
use crate::predict::{Among, Asked, PredictOptions, durations};
use crate::scale::Scale;
use crate::text::Reader;
use crate::{Result, RunFile, Trained};

/// The validation split with all that is needed to answer it (early stopping and the best checkpoint go by what it says).
pub(crate) struct Judge {
    val: Split,
    footage: Footage,
    reader: Reader,
    metrics: Vec<MetricName>,
    options: PredictOptions,
}

/// What weights were worth.
pub(crate) struct Scored {
    pub(crate) predictions: Predictions,
    /// Fractions, by name.
    pub(crate) metrics: IndexMap<String, f64>,
    /// Their mean: what the best checkpoint is chosen by.
    pub(crate) score: f64,
}

impl Judge {
    /// Opens the features of the split as the model wants them.
    pub(crate) fn open(
        run: &RunFile,
        val: Split,
        reader: Reader,
        input: &Input,
        scale: Option<&Arc<Scale>>,
    ) -> Result<Self> {
        let footage = Footage::open(&run.data, durations(&val))?.prepared(input, scale);
        let metrics = run.eval.metrics()?;
        let over_videos = |metric: &MetricName| matches!(metric.metric.task(), Task::Vcmr | Task::Vr | Task::Svmr);
        // The metric says where to search: one over videos means nothing within the query's own.
        let among = if metrics.iter().any(over_videos) {
            Among::Split
        } else if val.queries.iter().all(|truth| truth.pool.is_some()) {
            Among::Pool
        } else {
            Among::Own
        };
        let val = match run.eval.queries {
            Some(count) => Split { queries: drawn(val.queries, count, run.train.seed), ..val },
            None => val,
        };
        let (answers, batch) = (run.eval.answers, run.eval.batch);
        let options = PredictOptions { answers, batch, among, window: None, variant: FeatureVariant::Seen };
        Ok(Self { val, footage, reader, metrics, options })
    }

    /// The split's name.
    pub(crate) fn split(&self) -> &str {
        &self.val.name
    }

    /// Answers the split with the model as it is and scores the answers.
    pub(crate) fn score(&self, trained: &Trained) -> Result<Scored> {
        let Self { val, footage, reader, options, .. } = self;
        let asked = Asked { split: val, footage, reader, options, first: None };
        // An evaluation is not stopped half way: the checkpoint after it must hold its score.
        let predictions = trained.answer(&asked, &Progress::new())?.predictions;
        let plan = Plan::plain(self.metrics.clone(), Overrides::default());
        let evaluation = evaluate(&plan, &val.queries, &predictions, &Progress::new())?;
        let named = evaluation.columns.iter().filter_map(|column| Some((column.name.to_string(), column.mean()?)));
        let metrics: IndexMap<String, f64> = named.collect();
        let score = metrics.values().sum::<f64>() / metrics.len().max(1) as f64;
        Ok(Scored { predictions, metrics, score })
    }
}

/// `count` of the queries, in their order. Which ones hangs on the seed alone, so that all evaluations of a run ask the same.
fn drawn(queries: Vec<Truth>, count: usize, seed: u64) -> Vec<Truth> {
    let mut places: Vec<usize> = (0..queries.len()).collect();
    Rng::stream(seed, "validation queries").shuffle(&mut places);
    places.truncate(count);
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let is_drawn = |(place, _): &(usize, Truth)| places.next_if_eq(place).is_some();
    queries.into_iter().enumerate().filter(is_drawn).map(|(_, truth)| truth).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Query, QueryId};

    use super::*;

    #[test]
    fn a_part_of_the_queries_is_drawn_by_the_seed_and_keeps_its_order() {
        let of = |count: usize, seed: u64| -> Vec<usize> {
            let query = |number: usize| Query { id: QueryId::new(number.to_string()), text: "x".to_owned() };
            let queries = (0..50).map(|number| Truth::bare(query(number))).collect();
            drawn(queries, count, seed).iter().map(|truth| truth.query.id.to_string().parse().unwrap()).collect()
        };
        assert_eq!(of(8, 1).len(), 8);
        assert!(of(8, 1).is_sorted() && of(8, 1) == of(8, 1) && of(8, 1) != of(8, 2));
        assert_eq!(of(99, 1), (0..50).collect::<Vec<_>>());
    }
}
