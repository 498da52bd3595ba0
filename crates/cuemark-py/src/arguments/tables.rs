//! Predictions by column, scored where they lie: millions of rows are neither copied nor turned into objects.

use std::ops::Range;

use cuemark_core::{
    Answer, Answers, Extra, Lists, Prediction, Predictions, QueryId, QueryPredictions, RawSpan, RowCounts, Span, Task,
    TaskPredictions, VideoId, VideoTable,
};
use numpy::PyReadonlyArray1;
use numpy::ndarray::{ArrayView1, s};
use pyo3::prelude::*;
use rayon::prelude::*;

use super::columns::{Codes, Columns, Ids};
use super::keys;
use super::predictions::predicted;
use crate::failure::{Failure, Result};
use crate::predictions::Predictions as PyPredictions;

/// Rows that are checked together.
const BLOCK: usize = 1 << 15;

/// Columns `qid`, `start`, `end` and, where known, `video` and `score`, for one task or for each of several.
pub(crate) struct Tables<'py> {
    tasks: Vec<(Task, Table<'py>)>,
}

struct Table<'py> {
    argument: String,
    qid: Ids<'py>,
    video: Option<Ids<'py>>,
    start: PyReadonlyArray1<'py, f64>,
    end: PyReadonlyArray1<'py, f64>,
    score: Option<PyReadonlyArray1<'py, f64>>,
}

impl<'py> Tables<'py> {
    /// Borrows the columns of `object`, the argument called `argument`; `None` when it is something else.
    ///
    /// # Errors
    /// When a column is missing or is none.
    pub(crate) fn of(object: &Bound<'py, PyAny>, argument: &str) -> Result<Option<Self>> {
        if object.is_instance_of::<PyPredictions>() {
            return Ok(None); // they have a method of that name
        }
        let Some(names) = keys(object)? else { return Ok(None) };
        if names.iter().any(|name| name == "start") {
            return Ok(Some(Self { tasks: vec![(Task::Any, Table::of(object, names, argument)?)] }));
        }
        let mut tasks = Vec::with_capacity(names.len());
        for name in names {
            let Some(task) = task(&name) else { return Ok(None) };
            let table = object.get_item(&name)?;
            let Some(columns) = keys(&table)? else { return Ok(None) };
            tasks.push((task, Table::of(&table, columns, &name)?));
        }
        Ok((!tasks.is_empty()).then_some(Self { tasks }))
    }

    /// The lists, every row checked.
    ///
    /// # Errors
    /// Of the first row that is no prediction.
    pub(crate) fn lists(&self, py: Python<'_>) -> Result<ColumnAnswers<'_>> {
        let views: Vec<(Task, &str, View<'_>)> =
            self.tasks.iter().map(|(task, table)| (*task, table.argument.as_str(), table.view())).collect();
        py.detach(|| {
            let checked = views.into_par_iter().map(|(task, argument, view)| {
                let rows =
                    view.check().map_err(|(row, problem)| Failure::argument(format!("{argument}[{row}]"), problem))?;
                Ok((task, ColumnLists::of(view), rows))
            });
            let mut answers = ColumnAnswers { tasks: Vec::new(), rows: RowCounts::default() };
            for (task, lists, rows) in checked.collect::<Result<Vec<_>>>()? {
                answers.rows.add(&rows);
                answers.tasks.push((task, lists));
            }
            Ok(answers)
        })
    }
}

fn task(name: &str) -> Option<Task> {
    [Task::Vcmr, Task::Svmr, Task::Vr].into_iter().find(|task| task.to_string() == name)
}

impl<'py> Table<'py> {
    fn of(table: &Bound<'py, PyAny>, names: Vec<String>, argument: &str) -> Result<Self> {
        let mut columns = Columns::of(table, names, argument);
        Ok(Self {
            qid: columns.needed_ids("qid")?,
            video: columns.ids("video")?,
            start: columns.needed_numbers("start")?,
            end: columns.needed_numbers("end")?,
            score: columns.numbers("score")?,
            argument: argument.to_owned(),
        })
    }

    fn view(&self) -> View<'_> {
        let mut videos = VideoTable::new();
        let names = self.video.iter().flat_map(Ids::names);
        let places = names.map(|name| videos.insert_full(VideoId::new(name.clone())).0).collect();
        View {
            queries: self.qid.names().iter().map(|name| QueryId::new(name.clone())).collect(),
            qid: self.qid.codes(),
            videos,
            places,
            video: self.video.as_ref().map(Ids::codes),
            start: self.start.as_array(),
            end: self.end.as_array(),
            score: self.score.as_ref().map(|score| score.as_array()),
        }
    }
}

/// The rows of one table.
struct View<'a> {
    queries: Vec<QueryId>,
    qid: Codes<'a>,
    videos: VideoTable,
    /// Which of them a code means.
    places: Vec<usize>,
    video: Option<Codes<'a>>,
    start: ArrayView1<'a, f64>,
    end: ArrayView1<'a, f64>,
    score: Option<ArrayView1<'a, f64>>,
}

impl<'a> View<'a> {
    /// What had to be read differently, or the first row that is no prediction.
    fn check(&self) -> Result<RowCounts, (usize, String)> {
        let rows = self.start.len();
        let blocks: Vec<_> = (0..rows.div_ceil(BLOCK))
            .into_par_iter()
            .map(|block| self.check_rows(block * BLOCK..rows.min((block + 1) * BLOCK)))
            .collect();
        let mut counts = RowCounts::default();
        for block in blocks {
            counts.add(&block?);
        }
        Ok(counts)
    }

    /// Whether all of these rows are as they should be.
    fn is_plain(&self, rows: Range<usize>) -> bool {
        let part = |column: &ArrayView1<'a, f64>| column.slice_move(s![rows.clone()]);
        // Comparisons with NaN do not hold. No early end, so that several rows are looked at at once.
        let is_span = |start: f64, end: f64| (start >= 0.0) & (start <= end) & (end < f64::INFINITY);
        let (starts, ends) = (part(&self.start), part(&self.end));
        let spans = starts.iter().zip(&ends).fold(true, |plain, (start, end)| plain & is_span(*start, *end));
        let scores = self.score.as_ref().map(part);
        spans && scores.is_none_or(|scores| scores.iter().fold(true, |plain, score| plain & score.is_finite()))
    }

    fn check_rows(&self, rows: Range<usize>) -> Result<RowCounts, (usize, String)> {
        let mut counts = RowCounts::default();
        if self.is_plain(rows.clone()) {
            return Ok(counts);
        }
        for row in rows {
            let score = self.score.map(|score| score[row]);
            predicted(self.start[row], self.end[row], score, &mut counts).map_err(|problem| (row, problem))?;
        }
        Ok(counts)
    }

    fn answer(&self, row: usize) -> Answer<'_> {
        // Every row was checked.
        let read = RawSpan::new(self.start[row], self.end[row]).into_predicted();
        let span = read.map_or(Span::whole(0.0), |(span, _)| span);
        let place = self.video.as_ref().and_then(|codes| self.places.get(codes.of(row)));
        let video = place.and_then(|place| self.videos.get_index(*place));
        Answer { video, span, score: self.score.map(|score| score[row]) }
    }
}

/// The ranked lists of one table, in the order in which their queries first appear.
struct ColumnLists<'a> {
    view: View<'a>,
    /// Code of each query, and its rows.
    groups: Vec<(usize, Vec<Range<usize>>)>,
}

impl<'a> ColumnLists<'a> {
    fn of(view: View<'a>) -> Self {
        let groups = view.qid.groups(view.queries.len());
        Self { view, groups }
    }
}

impl Lists for ColumnLists<'_> {
    fn count(&self) -> usize {
        self.groups.len()
    }

    fn query(&self, place: usize) -> &QueryId {
        &self.view.queries[self.groups[place].0]
    }

    fn is_unanswered(&self, _: usize) -> bool {
        false // a query without a row has no list
    }

    fn saliency(&self, _: usize) -> Option<&[f64]> {
        None
    }

    fn ranked(&self, place: usize) -> Vec<Answer<'_>> {
        let runs = &self.groups[place].1;
        let mut ranked = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
        for run in runs {
            ranked.extend(run.clone().map(|row| self.view.answer(row)));
        }
        ranked
    }

    fn ranked_in(&self, place: usize, depth: usize, videos: &[&VideoId]) -> Option<Vec<(usize, Answer<'_>)>> {
        let codes = self.view.video.as_ref()?;
        let right: Vec<usize> = videos.iter().filter_map(|video| self.view.videos.get_index_of(*video)).collect();
        let is_right = |row: usize| self.view.places.get(codes.of(row)).is_some_and(|place| right.contains(place));
        let rows = self.groups[place].1.iter().cloned().flatten().take(depth).enumerate();
        let found = rows.filter(|(_, row)| is_right(*row));
        Some(found.map(|(rank, row)| (rank, self.view.answer(row))).collect())
    }

    fn videos(&self) -> Option<&VideoTable> {
        self.view.video.as_ref().map(|_| &self.view.videos)
    }
}

/// Lists by task, read from columns.
pub(crate) struct ColumnAnswers<'a> {
    tasks: Vec<(Task, ColumnLists<'a>)>,
    rows: RowCounts,
}

impl ColumnAnswers<'_> {
    /// Predicted spans that had to be read differently.
    pub(crate) fn rows(&self) -> &RowCounts {
        &self.rows
    }

    /// The same as predictions of our own, for whoever keeps them.
    pub(crate) fn to_predictions(&self) -> Predictions {
        let owned = |lists: &ColumnLists<'_>, place: usize| QueryPredictions {
            query: lists.query(place).clone(),
            ranked: lists
                .ranked(place)
                .into_iter()
                .map(|Answer { video, span, score }| Prediction { video: video.cloned(), span, score })
                .collect(),
            saliency: None,
            extra: Extra::default(),
        };
        let tasks = self.tasks.iter().map(|(task, lists)| TaskPredictions {
            task: *task,
            queries: (0..lists.count()).into_par_iter().with_min_len(16).map(|place| owned(lists, place)).collect(),
        });
        Predictions { tasks: tasks.collect(), rows: self.rows.clone(), ..Predictions::default() }
    }
}

impl Answers for ColumnAnswers<'_> {
    fn tasks(&self) -> Vec<Task> {
        self.tasks.iter().map(|(task, _)| *task).collect()
    }

    fn named(&self, task: Task) -> Option<&dyn Lists> {
        self.tasks.iter().find(|(known, _)| *known == task).map(|(_, lists)| lists as &dyn Lists)
    }
}
