//! Running a plan over truth and predictions.

use cuemark_core::{Answers, ChunkRange, Lists, Progress, QueryId, Span, Task, Truth};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::case::{Candidate, Case};
use crate::map::Overlaps;
use crate::name::MAP_THRESHOLDS;
use crate::ndcg::{Graded, Matched};
use crate::{
    Abstention, EvalError, GradedSpan, Group, Grouping, HighlightLevel, Judge, LengthRange, Metric, MetricName,
    Missing, Plan, Preset, Stage, Ventured, WhichHit, abstention, average_rank, chunk_miou, clips_ap,
    discounted_recall_at, highlight_ap, highlight_hit, hit_within, refusal_precision, refusal_recall, top_clips_ap,
    top_iou,
};

/// One metric's score for every query, in truth order.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// What was measured.
    pub name: MetricName,
    /// NaN where the query does not count.
    scores: Vec<f64>,
}

impl Column {
    /// Scores that were not evaluated here: another column's differences, or what an earlier evaluation stored. NaN where
    /// the query does not count.
    pub fn derived(name: MetricName, scores: Vec<f64>) -> Self {
        Self { name, scores }
    }

    /// The score of the query at `position`; `None` where it does not count.
    pub fn score(&self, position: usize) -> Option<f64> {
        self.scores.get(position).copied().filter(|score| !score.is_nan())
    }

    /// Every score, NaN where a query does not count.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Number of queries that count.
    pub fn counted(&self) -> usize {
        self.scores.iter().filter(|score| !score.is_nan()).count()
    }

    /// Mean over the queries that count, a fraction; `None` when none does.
    pub fn mean(&self) -> Option<f64> {
        let counted = self.counted();
        let sum: f64 = self.scores.iter().filter(|score| !score.is_nan()).sum();
        (counted > 0).then(|| sum / counted as f64)
    }
}

/// What an evaluation found.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Metrics in the plan's order, then their groups.
    pub columns: Vec<Column>,
    /// Queries of the truth.
    pub queries: usize,
    /// Queries without a single prediction.
    pub missing: usize,
    /// Prediction lists for queries that the truth does not have.
    pub unknown: usize,
    /// How well scores tell queries with a moment from queries without, where the truth has both.
    pub abstention: Option<Abstention>,
    /// What was left out of a preset, and why.
    pub notes: Vec<String>,
}

/// Scores `predictions` against `truths` as `plan` says. `progress` counts queries: one step per query, set of steps and
/// task.
///
/// # Errors
/// When a metric cannot be computed from what the files say, ids are not unique, the plan refuses missing queries, or it was
/// stopped.
pub fn evaluate(
    plan: &Plan,
    truths: &[Truth],
    predictions: &dyn Answers,
    progress: &Progress,
) -> Result<Evaluation, EvalError> {
    if plan.metrics.is_empty() {
        let problem = "no metric was asked for".to_owned();
        return Err(EvalError::NothingToScore { metric: "nothing".to_owned(), problem });
    }
    let known = index_truths(truths)?;
    let mut answers = Answered::new(&known, truths.len());
    let mut notes = predictions.notes();
    let mut columns: Vec<Option<Column>> = vec![None; plan.metrics.len()];
    progress.announce(truths.len() * plan.stages.iter().map(|stage| by_task(plan, stage).len()).sum::<usize>());
    for stage in &plan.stages {
        for (task, positions) in by_task(plan, stage) {
            let positions = drop_unscorable_highlights(plan, truths, predictions, positions, &mut notes)?;
            let Some(first) = positions.first() else { continue };
            let answered = answers.of(task, &plan.metrics[*first], predictions, plan.missing, truths)?;
            let sheet = ScoreSheet { plan, stage, positions: &positions, progress };
            for (position, scores) in positions.iter().zip(sheet.fill(truths, answered)?) {
                columns[*position] = Some(Column { name: plan.metrics[*position].clone(), scores });
            }
        }
    }
    let mut columns: Vec<Column> = columns.into_iter().flatten().collect();
    if plan.preset.is_some() {
        let empty = columns.extract_if(.., |column| column.counted() == 0);
        let names: Vec<String> = empty.map(|column| column.name.to_string()).collect();
        match names.as_slice() {
            [] => {}
            [only] => notes.push(format!("{only}: no query to score")),
            [first, rest @ ..] => notes.push(format!("{first} and {} more: no query to score", rest.len())),
        }
    }
    if let Some(empty) = columns.iter().find(|column| column.counted() == 0) {
        let problem = "no query of the truth has what it scores".to_owned();
        return Err(EvalError::NothingToScore { metric: empty.name.to_string(), problem });
    }
    for grouping in &plan.groupings {
        let classes: Vec<Option<String>> = truths.par_iter().map(|truth| grouping.class_of(truth)).collect();
        let mut names: Vec<&String> = classes.iter().flatten().collect();
        names.sort_unstable();
        names.dedup();
        let plain: Vec<Column> = columns.iter().filter(|column| column.name.group.is_none()).cloned().collect();
        for name in names {
            let group = Group::Queries(*grouping, name.clone());
            columns.extend(plain.iter().map(|column| restrict(column, &group, &classes, name)));
        }
    }
    columns.retain(|column| column.counted() > 0);
    if plan.preset.is_some_and(Preset::averages_types) {
        notes.extend(means_of_types(&columns));
    }
    let abstention = abstaining(&answers, truths)?;
    let (missing, unknown) = (answers.missing, answers.unknown);
    Ok(Evaluation { columns, queries: truths.len(), missing, unknown, abstention, notes })
}

/// The abstention curve of the first task that was scored; nothing is looked at unless the truth has queries without a moment.
fn abstaining(answers: &Answered<'_>, truths: &[Truth]) -> Result<Option<Abstention>, EvalError> {
    let without = truths.iter().filter(|truth| truth.right().next().is_none()).count();
    let Some((_, sheet)) = answers.tables.first().filter(|_| without > 0 && without < truths.len()) else {
        return Ok(None);
    };
    let mut ventured = Vec::with_capacity(truths.len());
    for (truth, place) in truths.iter().zip(&sheet.places) {
        let case = Case::new(truth, place.map(|place| (sheet.lists, place)), &[])?;
        let overlaps = case.overlaps(case.ranked.iter(), 1, None, Judge::default());
        let score = case.ranked.first().map(|first| first.score.unwrap_or(0.0));
        ventured.push(Ventured { query: case.answerable(), score, is_hit: top_iou(&overlaps) >= 0.5 });
    }
    Ok(abstention(&ventured))
}

/// What papers print where every domain has a model of its own: the mean of the domains' means, whatever their sizes.
fn means_of_types(columns: &[Column]) -> Vec<String> {
    let plain = columns.iter().filter(|column| column.name.group.is_none());
    let mean = |whole: &Column| {
        let of_type = |column: &&Column| {
            column.name.metric == whole.name.metric
                && matches!(column.name.group, Some(Group::Queries(Grouping::Type, _)))
        };
        let means: Vec<f64> = columns.iter().filter(of_type).filter_map(Column::mean).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        (!means.is_empty()).then(|| format!("{}: mean over {} domains {:.2}", whole.name, means.len(), 100.0 * mean))
    };
    plain.filter_map(mean).collect()
}

fn restrict(column: &Column, group: &Group, classes: &[Option<String>], class: &str) -> Column {
    let inside = classes.iter().map(|of| of.as_deref() == Some(class));
    let scores = column.scores.iter().zip(inside).map(|(score, inside)| if inside { *score } else { f64::NAN });
    Column { name: MetricName { metric: column.name.metric, group: Some(group.clone()) }, scores: scores.collect() }
}

fn index_truths(truths: &[Truth]) -> Result<FxHashMap<&QueryId, usize>, EvalError> {
    let mut known = FxHashMap::default();
    known.reserve(truths.len());
    for (position, truth) in truths.iter().enumerate() {
        if known.insert(&truth.query.id, position).is_some() {
            return Err(EvalError::Duplicate { query: truth.query.id.clone(), place: "truth".to_owned() });
        }
    }
    Ok(known)
}

/// The metrics of a stage by the task whose answers they read.
fn by_task(plan: &Plan, stage: &Stage) -> Vec<(Task, Vec<usize>)> {
    let mut tasks: Vec<(Task, Vec<usize>)> = Vec::new();
    for position in &stage.metrics {
        let task = plan.metrics[*position].metric.task();
        match tasks.iter_mut().find(|(known, _)| *known == task) {
            Some((_, positions)) => positions.push(*position),
            None => tasks.push((task, vec![*position])),
        }
    }
    tasks
}

/// Highlights need ratings in the truth and saliency in the predictions: a preset does without, a person who asked is told.
fn drop_unscorable_highlights(
    plan: &Plan,
    truths: &[Truth],
    predictions: &dyn Answers,
    mut positions: Vec<usize>,
    notes: &mut Vec<String>,
) -> Result<Vec<usize>, EvalError> {
    let is_highlight = |position: &usize| plan.metrics[*position].metric.is_of_clips();
    let Some(first) = positions.iter().find(|position| is_highlight(position)) else { return Ok(positions) };
    let mut lists = predictions.tasks().into_iter().filter_map(|task| predictions.lists(task));
    let saliency = lists.any(|lists| (0..lists.count()).any(|place| lists.saliency(place).is_some()));
    let problem = match (saliency, truths.iter().any(|truth| truth.highlights.is_some())) {
        (true, true) => return Ok(positions),
        (false, _) => "the predictions carry no saliency",
        (_, false) => "the truth carries no clip ratings",
    };
    let metric = plan.metrics[*first].to_string();
    if plan.preset.is_none() {
        return Err(EvalError::NothingToScore { metric, problem: problem.to_owned() });
    }
    notes.push(format!("highlight metrics are left out: {problem}"));
    positions.retain(|position| !is_highlight(position));
    Ok(positions)
}

/// The lists of one task and, for every query of the truth, which of them answers it.
struct Sheet<'a> {
    lists: &'a dyn Lists,
    places: Vec<Option<usize>>,
}

/// Prediction lists by truth, one table per task.
struct Answered<'a> {
    known: &'a FxHashMap<&'a QueryId, usize>,
    tables: Vec<(Task, Sheet<'a>)>,
    queries: usize,
    missing: usize,
    unknown: usize,
}

impl<'a> Answered<'a> {
    fn new(known: &'a FxHashMap<&'a QueryId, usize>, queries: usize) -> Self {
        Self { known, tables: Vec::new(), queries, missing: 0, unknown: 0 }
    }

    fn of(
        &mut self,
        task: Task,
        metric: &MetricName,
        predictions: &'a dyn Answers,
        policy: Missing,
        truths: &[Truth],
    ) -> Result<&Sheet<'a>, EvalError> {
        if let Some(found) = self.tables.iter().position(|(known, _)| *known == task) {
            return Ok(&self.tables[found].1);
        }
        let lists = predictions.lists(task).ok_or_else(|| EvalError::NoTask {
            metric: metric.to_string(),
            task,
            answered: predictions.tasks().iter().map(ToString::to_string).collect(),
        })?;
        let mut places: Vec<Option<usize>> = vec![None; self.queries];
        let mut unknown = 0;
        for place in 0..lists.count() {
            let query = lists.query(place);
            match self.known.get(query) {
                None => unknown += 1,
                Some(position) if places[*position].is_some() => {
                    let place = format!("{task} predictions");
                    return Err(EvalError::Duplicate { query: query.clone(), place });
                }
                Some(position) => places[*position] = Some(place),
            }
        }
        let without: Vec<usize> = (0..self.queries).filter(|position| places[*position].is_none()).collect();
        if let (Missing::Refuse, Some(first)) = (policy, without.first()) {
            let first = truths[*first].query.id.clone();
            return Err(EvalError::Missing { count: without.len(), queries: self.queries, task, first });
        }
        let empty = places.iter().flatten().filter(|place| lists.is_unanswered(**place)).count();
        self.missing = self.missing.max(without.len() + empty);
        self.unknown = self.unknown.max(unknown);
        self.tables.push((task, Sheet { lists, places }));
        Ok(&self.tables[self.tables.len() - 1].1)
    }
}

/// The scores of some metrics that share a stage and a task.
struct ScoreSheet<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    positions: &'a [usize],
    progress: &'a Progress,
}

impl ScoreSheet<'_> {
    /// One vector of scores per metric.
    fn fill(&self, truths: &[Truth], answered: &Sheet<'_>) -> Result<Vec<Vec<f64>>, EvalError> {
        let width = self.positions.len();
        let mut rows = vec![f64::NAN; truths.len() * width];
        rows.par_chunks_mut(width).zip(truths.par_iter().zip(&answered.places)).with_min_len(64).try_for_each(
            |(row, (truth, place))| {
                self.progress.advance(1)?;
                if place.is_none() && self.plan.missing == Missing::Skip {
                    return Ok(());
                }
                let answer = place.map(|place| (answered.lists, place));
                let case = Case::new(truth, answer, &self.stage.steps)?;
                self.score_row(&case, row)
            },
        )?;
        Ok((0..width).map(|metric| rows.iter().skip(metric).step_by(width).copied().collect()).collect())
    }

    fn score_row(&self, case: &Case<'_>, row: &mut [f64]) -> Result<(), EvalError> {
        let mut shared =
            Shared { sheet: self, case, any: vec![], own: vec![], precision: vec![], graded: None, matched: vec![] };
        for (score, position) in row.iter_mut().zip(self.positions) {
            let MetricName { metric, group } = &self.plan.metrics[*position];
            let range = match group {
                Some(Group::Moments(range)) => Some(*range),
                Some(Group::Queries(grouping, class)) => {
                    if grouping.class_of(case.truth).as_ref() != Some(class) {
                        continue;
                    }
                    None
                }
                None => None,
            };
            if let Some(value) = shared.score(metric, range)? {
                *score = value;
            }
        }
        Ok(())
    }

    /// How far down a list any of the metrics looks.
    fn depth(&self) -> usize {
        let looks = self.positions.iter().map(|position| match self.plan.metrics[*position].metric {
            Metric::Recall { n, .. } | Metric::Vcmr { n, .. } | Metric::Svmr { n, .. } | Metric::Mvmr { n, .. } => n,
            _ => 1,
        });
        looks.max().unwrap_or(1)
    }
}

/// What several metrics of one query share, computed when the first of them asks.
struct Shared<'s, 'a> {
    sheet: &'s ScoreSheet<'s>,
    case: &'s Case<'a>,
    /// Overlaps of the list, by range of moment length.
    any: Vec<(Option<LengthRange>, Vec<f64>)>,
    /// Overlaps of the list without other videos.
    own: Vec<(Option<LengthRange>, Vec<f64>)>,
    precision: Vec<(Option<LengthRange>, Overlaps)>,
    graded: Option<Graded<'a>>,
    /// Graded lists, by threshold.
    matched: Vec<(f64, Matched)>,
}

impl<'a> Shared<'_, 'a> {
    /// The score of this query; `None` when it does not count.
    fn score(&mut self, metric: &Metric, range: Option<LengthRange>) -> Result<Option<f64>, EvalError> {
        let case = self.case;
        let judge = self.sheet.stage.judge;
        let nothing_right = case.right(range).next().is_none();
        let share = |hit: bool| Ok(Some(f64::from(u8::from(hit))));
        match *metric {
            Metric::HighlightMap { level } => self.highlight(metric, |saliency, truth, duration| {
                highlight_ap(level.unwrap_or(HighlightLevel::VeryGood), saliency, truth, duration)
            }),
            Metric::HighlightHit { level } => self.highlight(metric, |saliency, truth, duration| {
                let level = level.unwrap_or(HighlightLevel::VeryGood);
                Some(f64::from(u8::from(highlight_hit(level, saliency, truth, duration))))
            }),
            Metric::RefusalPrecision => Ok(refusal_precision(case.answerable(), case.ranked.len())),
            Metric::RefusalRecall => Ok(refusal_recall(case.answerable(), case.ranked.len())),
            Metric::ClipsAp { none } => Ok(self.clips(|saliency, truth| clips_ap(none, saliency, truth))),
            Metric::TopClipsAp { n } => Ok(self.clips(|saliency, truth| top_clips_ap(n, saliency, truth))),
            Metric::Ndcg { .. } if case.targets.is_empty() => Ok(None),
            Metric::Ndcg { k, m } => Ok(Some(self.matched(m).ndcg(k))),
            _ if nothing_right => Ok(None),
            Metric::Recall { n, m } | Metric::Vcmr { n, m } | Metric::Mvmr { n, m } => {
                share(hit_within(n, m, self.any(range), judge))
            }
            Metric::Svmr { n, m } => share(hit_within(n, m, self.own(range), judge)),
            Metric::Vr { n } => {
                let right = |candidate: &Candidate<'a>| case.right(None).any(|target| case.meets(candidate, target));
                share(case.ranked.iter().take(n).any(right))
            }
            Metric::MeanIou => Ok(Some(top_iou(self.any(range)).max(0.0))),
            Metric::DiscountedRecall { n, m } => {
                let duration = case.needs_duration(&metric.to_string())?;
                let truth: Vec<Span> = case.right(range).map(|target| target.span).collect();
                let video = case.right(range).next().map(|target| target.video);
                let ranked: Vec<Span> = case
                    .ranked
                    .iter()
                    .take(n)
                    .map(|candidate| if Some(candidate.video) == video { candidate.span } else { Span::whole(0.0) })
                    .collect();
                Ok(Some(discounted_recall_at(n, m, &ranked, &truth, duration, WhichHit::Best, judge)))
            }
            Metric::MeanAp { .. } if case.ranked.is_empty() && self.sheet.plan.missing == Missing::Refuse => Ok(None),
            Metric::MeanAp { m } => {
                let overlaps = self.precision(range);
                Ok(Some(match m {
                    Some(m) => overlaps.average_precision(m),
                    None => {
                        let all = MAP_THRESHOLDS.map(|m| overlaps.average_precision(m));
                        all.iter().sum::<f64>() / all.len() as f64
                    }
                }))
            }
            Metric::TargetRecall { n, m } => Ok(Some(self.precision(range).target_recall(n, m))),
            Metric::DidemoRank { n } => {
                let (ranked, times) = self.chunks();
                Ok(average_rank(&ranked, &times).map(|rank| f64::from(u8::from(rank <= n as f64))))
            }
            Metric::DidemoMiou => {
                let (ranked, times) = self.chunks();
                Ok(chunk_miou(&ranked, &times))
            }
        }
    }

    fn highlight(
        &self,
        metric: &Metric,
        score: impl FnOnce(&[f64], &cuemark_core::Highlights, f64) -> Option<f64>,
    ) -> Result<Option<f64>, EvalError> {
        let Some(truth) = &self.case.truth.highlights else { return Ok(None) };
        let duration = self.case.needs_duration(&metric.to_string())?;
        Ok(score(self.case.saliency.unwrap_or_default(), truth, duration))
    }

    fn clips(&self, score: impl FnOnce(&[f64], &cuemark_core::Highlights) -> Option<f64>) -> Option<f64> {
        score(self.case.saliency.unwrap_or_default(), self.case.truth.highlights.as_ref()?)
    }

    fn any(&mut self, range: Option<LengthRange>) -> &[f64] {
        let (case, sheet) = (self.case, self.sheet);
        let judge = sheet.stage.judge;
        cached(&mut self.any, range, || case.overlaps(case.ranked.iter(), sheet.depth(), range, judge)).as_slice()
    }

    fn own(&mut self, range: Option<LengthRange>) -> &[f64] {
        let (case, sheet) = (self.case, self.sheet);
        cached(&mut self.own, range, || {
            let right = |candidate: &&Candidate<'a>| case.right(None).any(|target| case.meets(candidate, target));
            case.overlaps(case.ranked.iter().filter(right), sheet.depth(), range, sheet.stage.judge)
        })
        .as_slice()
    }

    fn precision(&mut self, range: Option<LengthRange>) -> &Overlaps {
        let case = self.case;
        cached(&mut self.precision, range, || {
            let ranked: Vec<Span> = case.ranked.iter().map(|candidate| candidate.span).collect();
            let truth: Vec<Span> = case.right(range).map(|target| target.span).collect();
            Overlaps::new(&ranked, &truth)
        })
    }

    fn matched(&mut self, m: f64) -> &Matched {
        let (case, judge) = (self.case, self.sheet.stage.judge);
        let graded = self.graded.get_or_insert_with(|| {
            let moments = case.targets.iter().map(|target| GradedSpan {
                video: target.video,
                span: target.span,
                relevance: target.relevance,
            });
            Graded::new(case.ranked.iter().map(|candidate| (candidate.video, candidate.span)), moments)
        });
        cached(&mut self.matched, m, || graded.matched(m, judge))
    }

    fn chunks(&self) -> (Vec<ChunkRange>, Vec<ChunkRange>) {
        let ranked = self.case.ranked.iter().filter_map(|candidate| ChunkRange::from_span(candidate.span));
        let times = self.case.right(None).filter_map(|target| ChunkRange::from_span(target.span));
        (ranked.collect(), times.collect())
    }
}

/// The value kept under `key`, made the first time.
fn cached<K: PartialEq, V>(cache: &mut Vec<(K, V)>, key: K, make: impl FnOnce() -> V) -> &V {
    let found = cache.iter().position(|(known, _)| *known == key);
    let at = found.unwrap_or_else(|| {
        cache.push((key, make()));
        cache.len() - 1
    });
    &cache[at].1
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Prediction, Predictions, Query, QueryPredictions, Video};

    use super::*;
    use crate::{Overrides, parse_list, suitable};

    fn truth(id: &str, spans: &[(f64, f64)]) -> Truth {
        let query = Query { id: QueryId::from(id), text: "she waves".to_owned() };
        Truth::single(query, Video::new("v", 60.0), spans.iter().map(|(start, end)| Span::new(*start, *end).unwrap()))
    }

    fn list(id: &str, answers: &[(f64, f64, f64)]) -> QueryPredictions {
        let ranked = answers.iter().map(|(start, end, score)| Prediction {
            video: None,
            span: Span::new(*start, *end).unwrap(),
            score: Some(*score),
        });
        QueryPredictions {
            query: QueryId::from(id),
            ranked: ranked.collect(),
            saliency: None,
            extra: Default::default(),
        }
    }

    #[test]
    fn refusing_is_scored_where_some_queries_have_no_moment() {
        // Two queries with a moment, two without; one of each is refused.
        let truths = [truth("a", &[(0.0, 10.0)]), truth("b", &[(20.0, 30.0)]), truth("c", &[]), truth("d", &[])];
        let lists = vec![list("a", &[(0.0, 10.0, 0.9)]), list("b", &[]), list("c", &[]), list("d", &[(5.0, 9.0, 0.3)])];
        let predictions = Predictions::any(lists);
        let plan = Plan::plain(suitable(&truths, &predictions), Overrides::default());
        let found = evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap();
        let mean = |name: &str| {
            let column = found.columns.iter().find(|column| column.name.to_string() == name).unwrap();
            (column.mean().unwrap(), column.counted())
        };
        assert_eq!(mean("Refusal:precision"), (0.5, 2), "b should have been answered, c not");
        assert_eq!(mean("Refusal:recall"), (0.5, 2), "c was refused, d was not");
        assert_eq!(mean("R@1,IoU=0.5"), (0.5, 2), "queries without a moment do not count");
        // a beats both c and d, b (refused) ties with c and loses to d: 2.5 of 4.
        assert_eq!(found.abstention.unwrap().auroc, 2.5 / 4.0);
        let answered = Plan::plain(suitable(&truths[..2], &predictions), Overrides::default());
        assert!(!answered.metrics.iter().any(|name| name.to_string().starts_with("Refusal")));
    }

    #[test]
    fn several_targets_are_found_one_by_one() {
        let truths = [truth("a", &[(0.0, 10.0), (20.0, 30.0), (40.0, 50.0)])];
        let predictions = Predictions::any(vec![list("a", &[(0.0, 10.0, 0.9), (0.0, 9.0, 0.8), (20.0, 31.0, 0.7)])]);
        let plan = Plan::plain(parse_list("tR@1,IoU=0.5,tR@5,IoU=0.5,tR@5,IoU=0.95").unwrap(), Overrides::default());
        let found = evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap();
        let means: Vec<f64> = found.columns.iter().map(|column| column.mean().unwrap()).collect();
        // IoU of 20–30 with 20–31 is 10/11, below 0.95.
        assert_eq!(means, [1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0]);
        assert!(found.abstention.is_none());
    }
}
