//! What a method answered, in any of the forms that `predictions` may have.

use std::sync::Arc;

use cuemark_core::{Extra, Prediction, Predictions, QueryId, QueryPredictions, RawSpan, RowCounts, Truth};
use cuemark_formats::{
    AnswerParser, PredictionFormat, PredictionOptions, Source, VideoIndex, answers, match_sentences, read_predictions,
};
use numpy::ndarray::ArrayView2;
use numpy::{Ix2, Ix3, PyUntypedArray};
use pyo3::prelude::*;
use rayon::prelude::*;

use super::arrays::shown;
use super::tables::Tables;
use super::{Floats, is_sequence, json, keys, path, type_name, with_view};
use crate::failure::{Failure, Result};
use crate::predictions::Predictions as PyPredictions;

/// How predictions are read: `pred_format` and `video_index`.
#[derive(Debug, Clone, Default)]
pub(crate) struct PredictionReading(PredictionOptions);

impl PredictionReading {
    /// Understands the keyword arguments.
    ///
    /// # Errors
    /// When one says what cannot be; a video index is read here.
    pub(crate) fn of(format: Option<&str>, videos: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let format = format.map(str::parse::<PredictionFormat>).transpose()?;
        let videos = match videos {
            None => None,
            Some(object) => Some(match path(object, "video_index")? {
                Some(path) => VideoIndex::read(&Source::new(path))?,
                None => {
                    let source = json::document(object, "video_index")?;
                    VideoIndex::read(&source).map_err(|error| Failure::from(error).of_argument("video_index"))?
                }
            }),
        };
        Ok(Self(PredictionOptions { format, videos, ..PredictionOptions::default() }))
    }
}

/// Predictions that may still have to be read.
pub(crate) enum PredictionArgument {
    /// They are there.
    Ready(Arc<Predictions>),
    /// Ranked lists for the truth's queries in the truth's order.
    ByPlace { lists: Vec<Vec<Prediction>>, rows: RowCounts, argument: &'static str },
    /// A file, or records in memory under the argument's name.
    Unread { source: Source, argument: Option<&'static str>, reading: PredictionReading },
}

impl PredictionArgument {
    /// Understands `object`, the argument called `argument`. Files are not opened yet.
    ///
    /// # Errors
    /// When it is none of what predictions can be, naming the argument and the row.
    pub(crate) fn of(object: &Bound<'_, PyAny>, argument: &'static str, reading: &PredictionReading) -> Result<Self> {
        if let Ok(ready) = object.cast::<PyPredictions>() {
            return Ok(Self::Ready(ready.get().inner()));
        }
        if let Some(path) = path(object, argument)? {
            return Ok(Self::Unread { source: Source::new(path), argument: None, reading: reading.clone() });
        }
        if object.cast::<PyUntypedArray>().is_ok() {
            return dense(&Floats::convert(object, argument)?, argument);
        }
        if let Some(tables) = Tables::of(object, argument)? {
            let lists = tables.lists(object.py())?;
            return Ok(Self::Ready(Arc::new(object.py().detach(|| lists.to_predictions()))));
        }
        if keys(object)?.is_some() {
            let source = json::document(object, argument)?;
            return Ok(Self::Unread { source, argument: Some(argument), reading: reading.clone() });
        }
        if is_sequence(object) {
            let items: Vec<Bound<'_, PyAny>> = object.try_iter()?.collect::<PyResult<_>>()?;
            if items.first().is_some_and(|first| first.cast::<PyUntypedArray>().is_ok()) {
                return one_array_a_query(&items, argument);
            }
            let source = json::records(&items, argument)?;
            return Ok(Self::Unread { source, argument: Some(argument), reading: reading.clone() });
        }
        let hint = "a path, cuemark Predictions, a list of dicts, an array, a list of arrays, or columns";
        Err(Failure::wrong_type(argument, format!("a `{}` is no predictions", type_name(object))).with_hint(hint))
    }

    /// Where their rows lie: in a file, or in records under the argument's name. Columns and arrays have no lines.
    pub(crate) fn source(&self) -> Option<Source> {
        match self {
            Self::Unread { source, .. } => Some(source.clone()),
            _ => None,
        }
    }

    /// The file behind them, if there is one to wait for.
    pub(crate) fn file(&mut self) -> Option<&mut Source> {
        match self {
            Self::Unread { source, argument: None, .. } => Some(source),
            _ => None,
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// As the reader says; of records in memory the row is named.
    pub(crate) fn read(self) -> Result<ReadPredictions> {
        match self {
            Self::Ready(predictions) => Ok(ReadPredictions::Ready(predictions)),
            Self::ByPlace { lists, rows, argument } => Ok(ReadPredictions::ByPlace { lists, rows, argument }),
            Self::Unread { source, argument, reading } => {
                let read = read_predictions(&source, &reading.0).map_err(|error| match argument {
                    Some(argument) => Failure::from(error).of_argument(argument),
                    None => error.into(),
                });
                let (format, predictions) = read?;
                Ok(ReadPredictions::InLayout(format, predictions))
            }
        }
    }
}

/// Predictions whose queries may still have to be found in the truth.
pub(crate) enum ReadPredictions {
    /// They name their queries.
    Ready(Arc<Predictions>),
    /// They answer the truth's queries in order.
    ByPlace { lists: Vec<Vec<Prediction>>, rows: RowCounts, argument: &'static str },
    /// They were read from this layout.
    InLayout(PredictionFormat, Predictions),
}

impl ReadPredictions {
    /// The predictions as answers to `truths`.
    ///
    /// # Errors
    /// When lists answer by their place and there are not as many as queries.
    pub(crate) fn answering(self, truths: &[Truth]) -> Result<Arc<Predictions>> {
        match self {
            Self::Ready(predictions) => Ok(predictions),
            Self::InLayout(format, mut predictions) => {
                match_sentences(&mut predictions, truths);
                if format == PredictionFormat::Answers {
                    answers::with_durations(&mut predictions, truths, &AnswerParser::default());
                }
                Ok(Arc::new(predictions))
            }
            Self::ByPlace { lists, rows, argument } => {
                if lists.len() != truths.len() {
                    let problem = format!("{} lists for {} queries", lists.len(), truths.len());
                    let hint = "arrays answer the truth's queries in order; give columns with a `qid` otherwise";
                    return Err(Failure::argument(argument, problem).with_hint(hint));
                }
                let lists = truths.iter().zip(lists).map(|(truth, ranked)| list(truth.query.id.clone(), ranked));
                Ok(Arc::new(Predictions { rows, ..Predictions::any(lists.collect()) }))
            }
        }
    }
}

fn list(query: QueryId, ranked: Vec<Prediction>) -> QueryPredictions {
    QueryPredictions { query, ranked, saliency: None, extra: Extra::default() }
}

/// One row as a prediction; what had to be read differently is counted.
///
/// # Errors
/// In words, when it is none.
pub(super) fn predicted(
    start: f64,
    end: f64,
    score: Option<f64>,
    counts: &mut RowCounts,
) -> Result<Prediction, String> {
    let (span, fault) = RawSpan::new(start, end).into_predicted().map_err(|error| error.to_string())?;
    if let Some(score) = score.filter(|score| !score.is_finite()) {
        return Err(format!("`score`: {score} is not a finite number"));
    }
    if let Some(fault) = fault {
        counts.count(fault);
        counts.changed += 1;
    }
    Ok(Prediction { video: None, span, score })
}

/// One ranked list with what had to be read differently, or the first row that is no prediction.
type Ranked = Result<(Vec<Prediction>, RowCounts), (usize, String)>;

/// `[queries, predictions, 2]`, or 3 with the score.
fn dense(floats: &Floats<'_>, argument: &'static str) -> Result<PredictionArgument> {
    let &[queries, _, 2 | 3] = floats.shape() else { return Err(not_ranked(floats, argument)) };
    let lists: Vec<Ranked> = with_view!(floats, view => {
        let view = view.into_dimensionality::<Ix3>().map_err(|error| Failure::argument(argument, error))?;
        let one = |query: usize| ranked_rows(view.index_axis(numpy::ndarray::Axis(0), query));
        (0..queries).into_par_iter().with_min_len(16).map(one).collect()
    });
    by_place(lists, argument)
}

/// A list of `[predictions, 2]`, or 3 with the score, one for each query.
fn one_array_a_query(items: &[Bound<'_, PyAny>], argument: &'static str) -> Result<PredictionArgument> {
    let mut lists = Vec::with_capacity(items.len());
    for (query, item) in items.iter().enumerate() {
        let place = format!("{argument}[{query}]");
        let floats = Floats::convert(item, &place)?;
        let &[_, 2 | 3] = floats.shape() else { return Err(not_ranked(&floats, &place)) };
        lists.push(with_view!(&floats, view => {
            ranked_rows(view.into_dimensionality::<Ix2>().map_err(|error| Failure::argument(place, error))?)
        }));
    }
    by_place(lists, argument)
}

fn ranked_rows<R: Copy + Into<f64>>(rows: ArrayView2<'_, R>) -> Ranked {
    let number = |row: usize, column: usize| rows[[row, column]].into();
    let mut counts = RowCounts::default();
    let mut ranked = Vec::with_capacity(rows.nrows());
    for row in 0..rows.nrows() {
        let score = (rows.ncols() == 3).then(|| number(row, 2));
        let read = predicted(number(row, 0), number(row, 1), score, &mut counts);
        ranked.push(read.map_err(|problem| (row, problem))?);
    }
    Ok((ranked, counts))
}

fn by_place(lists: Vec<Ranked>, argument: &'static str) -> Result<PredictionArgument> {
    let mut rows = RowCounts::default();
    let mut kept = Vec::with_capacity(lists.len());
    for (query, ranked) in lists.into_iter().enumerate() {
        let named = |(rank, problem)| Failure::argument(format!("{argument}[{query}, {rank}]"), problem);
        let (ranked, counts) = ranked.map_err(named)?;
        rows.add(&counts);
        kept.push(ranked);
    }
    Ok(PredictionArgument::ByPlace { lists: kept, rows, argument })
}

fn not_ranked(floats: &Floats<'_>, place: &str) -> Failure {
    let problem =
        format!("the shape is {} where lists of [start, end] or [start, end, score] are wanted", shown(floats.shape()));
    Failure::argument(place, problem)
        .with_hint("an array is queries × predictions × 2 or 3; lists of different lengths are a list of arrays")
}
