//! What is right, in any of the forms that `truth` may have.

use std::sync::Arc;

use cuemark_core::{GradedMoment, Moment, Query, QueryId, RawSpan, Relevance, Span, Split, Truth, Video, VideoId};
use cuemark_data::read_truth;
use cuemark_formats::Source;
use numpy::PyUntypedArray;
use numpy::ndarray::ArrayViewD;
use pyo3::prelude::*;

use super::arrays::shown;
use super::columns::Columns;
use super::{Floats, TruthReading, is_sequence, json, keys, path, type_name, with_view};
use crate::dataset::Dataset;
use crate::failure::{Failure, Result};
use crate::split::Split as PySplit;

/// Truth that may still have to be read.
pub(crate) enum TruthArgument {
    /// It is there.
    Ready(Arc<Split>),
    /// A file, or records in memory under the argument's name.
    Unread { source: Source, argument: Option<&'static str>, reading: TruthReading },
}

impl TruthArgument {
    /// Understands `object`, the argument called `argument`. Files are not opened yet.
    ///
    /// # Errors
    /// When it is none of what truth can be, naming the argument and the row.
    pub(crate) fn of(object: &Bound<'_, PyAny>, argument: &'static str, reading: &TruthReading) -> Result<Self> {
        if let Ok(split) = object.cast::<PySplit>() {
            return Ok(Self::Ready(split.get().inner()));
        }
        if let Ok(dataset) = object.cast::<Dataset>() {
            return Ok(Self::Ready(Arc::new(dataset.get().all_queries())));
        }
        if let Some(path) = path(object, argument)? {
            return Ok(Self::Unread { source: Source::new(path), argument: None, reading: reading.clone() });
        }
        if object.cast::<PyUntypedArray>().is_ok() {
            let floats = Floats::convert(object, argument)?;
            return Ok(Self::Ready(Arc::new(one_span_a_row(&floats, argument, reading)?)));
        }
        if let Some(names) = keys(object)? {
            if names.iter().any(|name| name == "start") {
                return Ok(Self::Ready(Arc::new(from_columns(
                    Columns::of(object, names, argument),
                    argument,
                    reading,
                )?)));
            }
            let source = json::document(object, argument)?;
            return Ok(Self::Unread { source, argument: Some(argument), reading: reading.clone() });
        }
        if is_sequence(object) {
            let items: Vec<Bound<'_, PyAny>> = object.try_iter()?.collect::<PyResult<_>>()?;
            if items.first().is_some_and(|first| first.cast::<PyUntypedArray>().is_ok()) {
                return Ok(Self::Ready(Arc::new(spans_by_query(&items, argument, reading)?)));
            }
            let source = json::records(&items, argument)?;
            return Ok(Self::Unread { source, argument: Some(argument), reading: reading.clone() });
        }
        let hint = "a path, a cuemark Split or Dataset, a list of dicts, an array, a list of arrays, or columns";
        Err(Failure::wrong_type(argument, format!("a `{}` is no truth", type_name(object))).with_hint(hint))
    }

    /// Where its rows lie: in a file, or in records under the argument's name. Columns and arrays have no lines.
    pub(crate) fn source(&self) -> Option<Source> {
        match self {
            Self::Unread { source, .. } => Some(source.clone()),
            _ => None,
        }
    }

    /// The file behind it, if there is one to wait for.
    pub(crate) fn file(&mut self) -> Option<&mut Source> {
        match self {
            Self::Unread { source, argument: None, .. } => Some(source),
            _ => None,
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// As the reader says; of records in memory the row is named.
    pub(crate) fn read(self) -> Result<Arc<Split>> {
        match self {
            Self::Ready(split) => Ok(split),
            Self::Unread { source, argument, reading } => {
                let read = read_truth(&source, reading.format, &reading.options).map_err(Failure::from);
                read.map(Arc::new).map_err(|error| match argument {
                    Some(argument) => error.of_argument(argument),
                    None => error,
                })
            }
        }
    }
}

/// Puts truth together query by query.
struct Builder<'a> {
    argument: &'a str,
    reading: &'a TruthReading,
    split: Split,
}

impl<'a> Builder<'a> {
    fn new(argument: &'a str, reading: &'a TruthReading) -> Self {
        let split = Split { name: argument.to_owned(), ..Split::default() };
        Self { argument, reading, split }
    }

    fn judged(&mut self, row: usize, raw: RawSpan, duration: Option<f64>) -> Result<Option<Span>> {
        let judged = self.reading.options.bad_rows.judge(raw, duration, &mut self.split.rows);
        judged.map_err(|fault| Failure::argument(format!("{}[{row}]", self.argument), fault))
    }

    /// The query in row `row` of an array: called after it, in a video called after it.
    fn numbered(&mut self, row: usize, spans: impl IntoIterator<Item = RawSpan>) -> Result<()> {
        let duration = self.reading.by_row.as_ref().and_then(|seconds| seconds.get(row).copied());
        let video = Video { id: VideoId::new(row.to_string()), duration };
        let query = Query { id: QueryId::new(row.to_string()), text: String::new() };
        let mut kept = Vec::new();
        for raw in spans {
            kept.extend(self.judged(row, raw, duration)?);
        }
        self.split.videos.push(video.clone());
        self.split.queries.push(Truth::single(query, video, kept));
        Ok(())
    }

    fn done(self) -> Result<Split> {
        if let Some(seconds) = &self.reading.by_row {
            let queries = self.split.queries.len();
            if seconds.len() != queries {
                let problem = format!("{} durations for {queries} queries", seconds.len());
                return Err(Failure::argument("durations", problem));
            }
        }
        if self.split.queries.is_empty() {
            return Err(Failure::argument(self.argument, "there is no query"));
        }
        Ok(self.split)
    }
}

/// `[queries, 2]`: one span each.
fn one_span_a_row(floats: &Floats<'_>, argument: &str, reading: &TruthReading) -> Result<Split> {
    let &[rows, 2] = floats.shape() else { return Err(not_spans(floats, argument)) };
    let mut builder = Builder::new(argument, reading);
    with_view!(floats, view => {
        for row in 0..rows {
            builder.numbered(row, [raw_span(&view, row)])?;
        }
    });
    builder.done()
}

/// A list of `[spans, 2]`, one for each query.
fn spans_by_query(items: &[Bound<'_, PyAny>], argument: &str, reading: &TruthReading) -> Result<Split> {
    let mut builder = Builder::new(argument, reading);
    for (row, item) in items.iter().enumerate() {
        let place = format!("{argument}[{row}]");
        let floats = Floats::convert(item, &place)?;
        let &[spans, 2] = floats.shape() else { return Err(not_spans(&floats, &place)) };
        with_view!(&floats, view => builder.numbered(row, (0..spans).map(|at| raw_span(&view, at))))?;
    }
    builder.done()
}

fn not_spans(floats: &Floats<'_>, place: &str) -> Failure {
    let problem = format!("the shape is {} where rows of [start, end] are wanted", shown(floats.shape()));
    Failure::argument(place, problem)
}

fn raw_span<R: Copy + Into<f64>>(view: &ArrayViewD<'_, R>, row: usize) -> RawSpan {
    let at = |column: usize| view.get([row, column]).map_or(f64::NAN, |value| (*value).into());
    RawSpan::new(at(0), at(1))
}

/// Columns `qid`, `video`, `start`, `end` and, where known, `query`, `duration`, `relevance`, `kind`: as the CSV layout.
fn from_columns(mut columns: Columns<'_, '_>, argument: &str, reading: &TruthReading) -> Result<Split> {
    let (qid, video) = (columns.needed_ids("qid")?, columns.needed_ids("video")?);
    let (start, end) = (columns.needed_numbers("start")?, columns.needed_numbers("end")?);
    let (texts, kinds) = (columns.ids("query")?, columns.ids("kind")?);
    let (durations, grades) = (columns.numbers("duration")?, columns.numbers("relevance")?);
    let videos: Vec<VideoId> = video.names().iter().map(|name| VideoId::new(name.clone())).collect();
    let queries: Vec<QueryId> = qid.names().iter().map(|name| QueryId::new(name.clone())).collect();
    let number = |column: &Option<numpy::PyReadonlyArray1<'_, f64>>, row: usize| {
        column.as_ref().and_then(|column| column.as_array().get(row).copied()).filter(|number| !number.is_nan())
    };
    let (start, end) = (start.as_array(), end.as_array());
    let mut builder = Builder::new(argument, reading);
    let mut seen = vec![false; videos.len()];
    let rows = video.codes();
    for (query, runs) in qid.codes().groups(queries.len()) {
        let mut truth: Option<Truth> = None;
        for row in runs.into_iter().flatten() {
            let place = || format!("{argument}[{row}]");
            let id = &videos[rows.of(row)];
            let duration = number(&durations, row)
                .or_else(|| reading.options.durations.as_ref().and_then(|known| known.get(id.as_str())));
            if let Some(seconds) = duration.filter(|seconds| !(*seconds > 0.0 && *seconds < 1e9)) {
                return Err(Failure::argument(place(), format!("`duration`: {seconds} is no duration in seconds")));
            }
            if !seen[rows.of(row)] {
                seen[rows.of(row)] = true;
                builder.split.videos.push(Video { id: id.clone(), duration });
            }
            let raw = RawSpan::new(start[row], end[row]);
            let span = builder.judged(row, raw, duration)?;
            let relevance = number(&grades, row).map(Relevance::try_from).transpose();
            let relevance =
                relevance.map_err(|problem| Failure::argument(place(), format!("`relevance`: {problem}")))?;
            let truth = truth.get_or_insert_with(|| Truth {
                video: Some(Video { id: id.clone(), duration }),
                kind: kinds.as_ref().map(|kinds| kinds.name(row).to_owned()),
                ..Truth::bare(Query {
                    id: queries[query].clone(),
                    text: texts.as_ref().map_or_else(String::new, |texts| texts.name(row).to_owned()),
                })
            });
            if truth.video.as_ref().is_some_and(|first| first.id != *id) {
                truth.video = None;
            }
            truth
                .moments
                .extend(span.map(|span| GradedMoment { moment: Moment { video: id.clone(), span }, relevance }));
        }
        builder.split.queries.extend(truth);
    }
    builder.done()
}
