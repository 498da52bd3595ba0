//! Scoring predictions once, with everything that a report will ask for later.

use cuemark_core::{Predictions, Progress, QueryId, QueryPredictions, Task, Truth};
use cuemark_metrics::{
    Bootstrap, EvalError, Evaluation, HighlightLevel, Metric, MetricName, Overrides, Plan, Preset, evaluate, intervals,
};
use cuemark_train::OutOfReach;
use rustc_hash::FxHashMap;

use super::about::About;
use super::clip_scores::ClipScores;
use super::digest;
use super::evaluated::{Evaluated, FORMAT_VERSION, FirstAnswers, Measured, Resampling};
use super::per_query::PerQuery;
use crate::Result;

/// Overlaps that tables show.
pub(super) const THRESHOLDS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];

/// How to score predictions for a report.
#[derive(Debug, Clone, Default)]
pub struct Measure {
    /// What is measured; by default what suits the truth ([`usual_plan`]).
    pub plan: Option<Plan>,
    /// How intervals are drawn. Default: 10 000 resamples at 95 %
    pub bootstrap: Bootstrap,
    /// Moments that the model could not meet, where somebody counted.
    pub out_of_reach: Option<OutOfReach>,
}

impl Measure {
    /// Scores `predictions` against `truths`. `progress` counts queries and resamples.
    ///
    /// # Errors
    /// Those of the evaluator: ids that are not unique, a metric that the files do not allow; when it was stopped.
    pub fn run(
        &self,
        about: About,
        truths: &[Truth],
        predictions: &Predictions,
        progress: &Progress,
    ) -> Result<Evaluated> {
        let plan = self.plan.clone().unwrap_or_else(|| with_highlights(usual_plan(truths), truths, predictions));
        let evaluation = evaluate(&plan, truths, predictions, progress)?;
        let bounds = intervals(&evaluation.columns, self.bootstrap, progress).map_err(EvalError::from)?;
        let metrics = evaluation.columns.iter().zip(bounds).filter_map(|(column, bounds)| {
            let measured = Measured {
                value: column.mean()?,
                low: bounds.low,
                high: bounds.high,
                counted: column.counted(),
                scores: PerQuery::of(column.scores().iter().copied()),
            };
            Some((column.name.to_string(), measured))
        });
        let Bootstrap { level, resamples, seed } = self.bootstrap;
        Ok(Evaluated {
            version: FORMAT_VERSION,
            about,
            queries: evaluation.queries,
            missing: evaluation.missing,
            unknown: evaluation.unknown,
            metrics: metrics.collect(),
            intervals: Resampling { level, resamples, seed },
            conventions: conventions(&plan, &evaluation),
            out_of_reach: self.out_of_reach,
            truth: digest::of_truth(truths),
            pairing: digest::of_pairing(truths),
            first: first_answers(truths, predictions),
        })
    }
}

/// What is measured when nobody says: R@1, R@5 and dR@1 at four overlaps and mIoU; graded truth gives NDCG, pools MVMR.
///
/// Discounted recall is left out where a duration is not known.
pub fn usual_plan(truths: &[Truth]) -> Plan {
    if truths.iter().flat_map(|truth| &truth.moments).any(|graded| graded.relevance.is_some()) {
        return Plan::plain(Preset::TvrRankingPaper.metrics(), Overrides::default());
    }
    if truths.iter().any(|truth| truth.pool.is_some()) {
        return Plan::plain(Preset::Mvmr.metrics(), Overrides::default());
    }
    let recalls = [1, 5].into_iter().flat_map(|n| THRESHOLDS.map(|m| Metric::Recall { n, m }));
    let timed = truths.iter().all(|truth| truth.duration().is_some_and(|duration| duration > 0.0));
    let discounted = THRESHOLDS.map(|m| Metric::DiscountedRecall { n: 1, m }).into_iter().filter(|_| timed);
    let metrics: Vec<MetricName> = recalls.chain(discounted).chain([Metric::MeanIou]).map(MetricName::from).collect();
    Plan::plain(metrics, Overrides::default())
}

/// The plan with HL-mAP and HL-Hit1 (very good, as papers print them), where people rated clips and the predictions score them.
fn with_highlights(plan: Plan, truths: &[Truth], predictions: &Predictions) -> Plan {
    let scored = predictions.tasks.iter().flat_map(|task| &task.queries).any(|list| list.saliency.is_some());
    let rated = truths.iter().any(|truth| truth.highlights.is_some());
    let timed = truths.iter().all(|truth| truth.highlights.is_none() || truth.duration().is_some());
    if !(scored && rated && timed) {
        return plan;
    }
    let level = Some(HighlightLevel::VeryGood);
    let of_clips = [Metric::HighlightMap { level }, Metric::HighlightHit { level }].map(MetricName::from);
    Plan::plain(plan.metrics.into_iter().chain(of_clips).collect(), Overrides::default())
}

fn conventions(plan: &Plan, evaluation: &Evaluation) -> Vec<String> {
    let name = plan.preset.map_or_else(|| "as defined".to_owned(), |preset| format!("preset {preset}"));
    let stages = plan.stages.iter().map(|stage| format!("{name}: {stage}"));
    stages.chain(evaluation.notes.iter().cloned()).collect()
}

fn first_answers(truths: &[Truth], predictions: &Predictions) -> FirstAnswers {
    let lists = [Task::Any, Task::Svmr, Task::Vcmr].into_iter().find_map(|task| predictions.for_task(task));
    let lists: FxHashMap<&QueryId, &QueryPredictions> =
        lists.unwrap_or_default().iter().map(|list| (&list.query, list)).collect();
    let mut first = FirstAnswers::default();
    let mut said = false;
    for truth in truths {
        let ranked = lists.get(&truth.query.id).map_or(&[][..], |list| &list.ranked);
        let overlap = |answer: &cuemark_core::Prediction| {
            let same = |video| answer.video.as_ref().is_none_or(|named| named == video);
            let right = truth.right().filter(|moment| same(&moment.video));
            right.map(|moment| answer.span.iou(moment.span)).reduce(f64::max)
        };
        let answer = ranked.first();
        let met = answer.and_then(&overlap);
        let place = answer.filter(|_| met.is_some()).map(|answer| answer.span);
        first.start.0.push(place.map_or(f32::NAN, |span| span.start() as f32));
        first.end.0.push(place.map_or(f32::NAN, |span| span.end() as f32));
        first.iou.0.push(met.unwrap_or(0.0) as f32);
        first.reach.0.push(ranked.iter().filter_map(&overlap).fold(0.0, f64::max) as f32);
        let clips = lists.get(&truth.query.id).and_then(|list| list.saliency.as_deref());
        first.saliency.push(clips.map(ClipScores::of).unwrap_or_default());
        let score = answer.and_then(|answer| answer.score).filter(|score| score.is_finite());
        said |= score.is_some();
        first.score.0.push(score.map_or(f32::NAN, |score| score as f32));
    }
    if !said {
        first.score = PerQuery::default();
    }
    if first.saliency.iter().all(|clips| clips.0.is_empty()) {
        first.saliency = Vec::new();
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{answers, truths};

    #[test]
    fn the_first_answer_and_the_best_of_the_list_are_kept_apart() {
        // The truth of query 0 is 10 to 20 s of 40.
        let truths = truths(1);
        let predictions = answers(&truths, |_| vec![(0.0, 5.0), (10.0, 20.0)]);
        let evaluated = Measure::default().run(About::default(), &truths, &predictions, &Progress::new()).unwrap();
        assert_eq!((evaluated.first.iou.get(0), evaluated.first.reach.get(0)), (Some(0.0), Some(1.0)));
        assert_eq!((evaluated.first.start.get(0), evaluated.first.end.get(0)), (Some(0.0), Some(5.0)));
        assert_eq!(evaluated.metrics["R@1,IoU=0.5"].value, 0.0);
        assert_eq!(evaluated.metrics["R@5,IoU=0.7"].value, 1.0);
    }

    #[test]
    fn a_query_without_an_answer_has_no_place_and_no_overlap() {
        let truths = truths(2);
        let mut predictions = answers(&truths, |_| vec![(10.0, 20.0)]);
        predictions.tasks[0].queries.pop();
        let evaluated = Measure::default().run(About::default(), &truths, &predictions, &Progress::new()).unwrap();
        assert_eq!((evaluated.first.start.get(1), evaluated.first.iou.get(1)), (None, Some(0.0)));
        assert_eq!(evaluated.missing, 1);
        assert!(evaluated.fault().is_none());
    }
}
