//! Which list of predictions answers which query of the truth.

use cuemark_core::{Answers, Lists, QueryId, Task, Truth};
use rustc_hash::FxHashMap;

use crate::{EvalError, MetricName, Missing};

/// The queries of the truth by id.
pub(crate) fn index_truths(truths: &[Truth]) -> Result<FxHashMap<&QueryId, usize>, EvalError> {
    let mut known = FxHashMap::default();
    known.reserve(truths.len());
    for (position, truth) in truths.iter().enumerate() {
        if known.insert(&truth.query.id, position).is_some() {
            return Err(EvalError::Duplicate { query: truth.query.id.clone(), place: "truth".to_owned() });
        }
    }
    Ok(known)
}

/// The lists of one task and, for every query of the truth, which of them answers it.
pub(crate) struct TaskLists<'a> {
    pub(crate) lists: &'a dyn Lists,
    pub(crate) places: Vec<Option<usize>>,
}

/// Prediction lists by truth, one table per task.
pub(crate) struct Answered<'a> {
    known: &'a FxHashMap<&'a QueryId, usize>,
    pub(crate) tables: Vec<(Task, TaskLists<'a>)>,
    queries: usize,
    /// Queries without a single prediction.
    pub(crate) missing: usize,
    /// Lists for queries that the truth does not have.
    pub(crate) unknown: usize,
}

impl<'a> Answered<'a> {
    pub(crate) fn new(known: &'a FxHashMap<&'a QueryId, usize>, queries: usize) -> Self {
        Self { known, tables: Vec::new(), queries, missing: 0, unknown: 0 }
    }

    pub(crate) fn of(
        &mut self,
        task: Task,
        metric: &MetricName,
        predictions: &'a dyn Answers,
        policy: Missing,
        truths: &[Truth],
    ) -> Result<&TaskLists<'a>, EvalError> {
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
        self.tables.push((task, TaskLists { lists, places }));
        Ok(&self.tables[self.tables.len() - 1].1)
    }
}
