//! What to measure when nobody says.

use cuemark_core::{Answers, Task, Truth};

use crate::{Metric, MetricName, Preset};

/// The metrics that people report for files like these: TVR's for the tasks that a file answers, NDCG for graded
/// truth, MVMR's for pools, and otherwise R@1 and R@5 at three thresholds with the mean overlap,
/// and where some queries have no moment, precision and recall at refusing.
pub fn suitable(truths: &[Truth], predictions: &dyn Answers) -> Vec<MetricName> {
    let tasks = predictions.tasks();
    if tasks.iter().any(|task| *task != Task::Any) {
        let metrics = Preset::Tvr.metrics().into_iter();
        return metrics.filter(|name| tasks.contains(&name.metric.task())).collect();
    }
    if truths.iter().flat_map(|truth| &truth.moments).any(|graded| graded.relevance.is_some()) {
        return Preset::TvrRankingPaper.metrics();
    }
    if truths.iter().any(|truth| truth.pool.is_some()) {
        return Preset::Mvmr.metrics();
    }
    let recalls = [1, 5].into_iter().flat_map(|n| [0.3, 0.5, 0.7].map(|m| Metric::Recall { n, m }.into()));
    let has = |wanted: bool| truths.iter().any(|truth| truth.right().next().is_some() == wanted);
    let refusals = [Metric::RefusalPrecision, Metric::RefusalRecall].into_iter().filter(|_| has(true) && has(false));
    recalls.chain([Metric::MeanIou.into()]).chain(refusals.map(MetricName::from)).collect()
}
