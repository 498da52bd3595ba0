//! Running a plan over truth and predictions.

use cuemark_core::{Answers, Progress, Task, Truth};
use rayon::prelude::*;

use crate::case::{Case, Looks, Until};
use crate::matching::{Answered, index_truths};
use crate::scorer::{Scorer, top_overlap};
use crate::{Abstention, EvalError, Group, Grouping, Judge, MetricName, Plan, Preset, Stage, Ventured, abstention};

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
            let scorer = Scorer { plan, stage, positions: &positions, progress };
            for (position, scores) in positions.iter().zip(scorer.fill(truths, answered)?) {
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
        // Numbers are compared for every query, column and class; names only once.
        let numbers = classes.par_iter().map(|class| names.binary_search(&class.as_ref()?).ok());
        let numbers: Vec<Option<usize>> = numbers.collect();
        let plain: Vec<Column> = columns.iter().filter(|column| column.name.group.is_none()).cloned().collect();
        for (number, name) in names.iter().enumerate() {
            let group = Group::Queries(*grouping, (*name).clone());
            columns.extend(plain.iter().map(|column| restrict(column, &group, &numbers, number)));
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
    let Some((_, answered)) = answers.tables.first().filter(|_| without > 0 && without < truths.len()) else {
        return Ok(None);
    };
    let mut ventured = Vec::with_capacity(truths.len());
    for (truth, place) in truths.iter().zip(&answered.places) {
        let case = Case::new(truth, place.map(|place| (answered.lists, place)), &[], Looks::Everywhere)?;
        let overlaps = case.overlaps(Until { depth: 1, enough: 1.0 }, None, Judge::default());
        let score = case.ranked.first().map(|first| first.score.unwrap_or(0.0));
        ventured.push(Ventured { query: case.answerable(), score, is_hit: top_overlap(&overlaps) >= 0.5 });
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

/// The scores of the queries whose class has that number.
fn restrict(column: &Column, group: &Group, classes: &[Option<usize>], class: usize) -> Column {
    let inside = classes.iter().map(|of| *of == Some(class));
    let scores = column.scores.iter().zip(inside).map(|(score, inside)| if inside { *score } else { f64::NAN });
    Column { name: MetricName { metric: column.name.metric, group: Some(group.clone()) }, scores: scores.collect() }
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

#[cfg(test)]
mod tests {
    use cuemark_core::{
        Answer, Lists, Prediction, Predictions, Query, QueryId, QueryPredictions, Rng, Span, Video, VideoId,
    };

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

    /// The same lists, which tell what lies in a video without being taken up.
    struct ColumnLists<'a>(&'a dyn Lists);

    impl Lists for ColumnLists<'_> {
        fn count(&self) -> usize {
            self.0.count()
        }

        fn query(&self, place: usize) -> &QueryId {
            self.0.query(place)
        }

        fn is_unanswered(&self, place: usize) -> bool {
            self.0.is_unanswered(place)
        }

        fn saliency(&self, place: usize) -> Option<&[f64]> {
            self.0.saliency(place)
        }

        fn ranked(&self, place: usize) -> Vec<Answer<'_>> {
            self.0.ranked(place)
        }

        fn ranked_in(&self, place: usize, depth: usize, videos: &[&VideoId]) -> Option<Vec<(usize, Answer<'_>)>> {
            let lies = |answer: &Answer<'_>| answer.video.is_some_and(|video| videos.contains(&video));
            let first = self.0.ranked(place).into_iter().enumerate().take(depth);
            Some(first.filter(|(_, answer)| lies(answer)).collect())
        }
    }

    #[test]
    fn what_lies_in_other_videos_need_not_be_looked_at_to_be_wrong() {
        let mut rng = Rng::stream(7, "answers");
        let mut span = move || {
            let start = rng.below(40) as f64;
            (rng.below(5), Span::new(start, start + 1.0 + rng.below(20) as f64).unwrap())
        };
        let videos = ["p", "q", "r", "s", "t"];
        let truths: Vec<Truth> = (0..60)
            .map(|number| {
                let (video, right) = span();
                let query = Query { id: QueryId::from(number.to_string().as_str()), text: "she waves".to_owned() };
                Truth::single(query, Video::new(videos[video], 60.0), [right, span().1])
            })
            .collect();
        let lists = truths.iter().map(|truth| QueryPredictions {
            query: truth.query.id.clone(),
            ranked: (0..30)
                .map(|rank| {
                    let (video, span) = span();
                    Prediction { video: Some(VideoId::from(videos[video])), span, score: Some(f64::from(30 - rank)) }
                })
                .collect(),
            saliency: None,
            extra: Default::default(),
        });
        let predictions = Predictions::any(lists.collect());
        let lists = ColumnLists(predictions.named(Task::Any).unwrap());
        let columns = AnyLists(&lists);
        let names = "R@1,IoU=0.5,R@5,IoU=0.7,VCMR:R@10,IoU=0.5,SVMR:R@1,IoU=0.5,SVMR:R@5,IoU=0.5,VR:R@1,VR:R@5,mIoU";
        let metrics = parse_list(names).unwrap();
        for plan in [
            Plan::plain(metrics.clone(), Overrides::default()),
            Plan::preset(Preset::Tvr, None, Overrides::default()),
            Plan::preset(Preset::Mvmr, None, Overrides::default()),
        ] {
            let whole = evaluate(&plan, &truths, &predictions, &Progress::new()).unwrap();
            let few = evaluate(&plan, &truths, &columns, &Progress::new()).unwrap();
            assert_eq!(whole.columns, few.columns);
            let mean = whole.columns.iter().filter_map(Column::mean).sum::<f64>() / whole.columns.len() as f64;
            assert!(mean > 0.05 && mean < 0.95, "nothing to tell apart: {mean}");
        }
    }

    /// Lists for any task.
    struct AnyLists<'a>(&'a ColumnLists<'a>);

    impl Answers for AnyLists<'_> {
        fn tasks(&self) -> Vec<Task> {
            vec![Task::Any]
        }

        fn named(&self, task: Task) -> Option<&dyn Lists> {
            (task == Task::Any).then_some(self.0 as &dyn Lists)
        }
    }
}
