//! Comma-separated values with a header, one prediction or one moment a row, seconds.
//!
//! Predictions: `qid,start,end` and, where known, `video` and `score`; the rows of one query are its ranked list in file
//! order and need not stand together. A row with nothing but a `qid` is a query without predictions. Other columns are kept.
//!
//! Truth: `qid,video,start,end` and, where known, `query`, `duration`, `relevance` and `kind`; the rows of one query are
//! its moments, and the sentence, kind and other columns of its first row are the query's.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;

use ::csv::{Reader, ReaderBuilder, StringRecord, Trim, WriterBuilder};
use cuemark_core::{
    Extra, GradedMoment, Moment, Prediction, Predictions, Query, QueryId, QueryPredictions, RawSpan, Relevance,
    RowCounts, RowPolicy, Split, Truth, Video,
};
use rustc_hash::FxHashSet;
use serde_json::{Map, Value};

use crate::cuemark_jsonl::VideoList;
use crate::fault::shorten;
use crate::join::made_up;
use crate::names::Names;
use crate::row_extras::{self, RowExtras};
use crate::{ReadError, Result, Source, WholeFile};

const PREDICTION_COLUMNS: [&str; 5] = ["qid", "video", "start", "end", "score"];
const TRUTH_COLUMNS: [&str; 8] = ["qid", "query", "video", "start", "end", "duration", "relevance", "kind"];
/// Columns are looked up one by one, so a hostile header must not have millions.
const MOST_COLUMNS: usize = 1_000;
/// A query with predictions, beside those: its id, its place and its list, gathered and kept.
const QUERY: usize = 2 * size_of::<QueryPredictions>() + 64;
/// A cell of an unknown column, kept under the column's name.
const CELL: usize = 192;

/// Reads predictions.
///
/// # Errors
/// When the header lacks `start`, `end`, or both `qid` and what stands for it (`video` and `query`), or at the first row that is
/// no prediction.
pub(crate) fn read_predictions(source: &Source) -> Result<Predictions> {
    let mut places: HashMap<QueryId, usize> = HashMap::new();
    let mut lists: Vec<(QueryId, Vec<Prediction>, RowExtras)> = Vec::new();
    let known = FxHashSet::default();
    let mut names = Names::new(&known);
    let mut rows = RowCounts::default();
    let mut sentences: HashMap<usize, Value> = HashMap::new();
    let mut table = Table::open(source, &["start", "end"], 2 * size_of::<Prediction>())?;
    let has = |name: &str| table.header.iter().any(|column| column == name);
    let by_id = has("qid");
    if !(by_id || has("video") && has("query")) {
        let hint = "the first line names the columns: qid,video,start,end,score; without `qid`, `video` and `query` join a row";
        return Err(source.record(1, "qid", "there is no such column").with_hint(hint));
    }
    while let Some(row) = table.next_row()? {
        let id = if by_id { QueryId::from(row.text("qid")?) } else { made_up(row.text("video")?, row.text("query")?) };
        if !places.contains_key(&id) {
            source.charge(row.line, QUERY)?;
        }
        let place = *places.entry(id).or_insert_with_key(|id| {
            lists.push((id.clone(), Vec::new(), RowExtras::default()));
            lists.len() - 1
        });
        if row.is_bare() {
            continue;
        }
        let raw = RawSpan::new(row.number("start")?, row.number("end")?);
        let (span, fault) = raw.into_predicted().map_err(|error| row.fault("start", error))?;
        if let Some(fault) = fault {
            rows.count(fault);
            rows.changed += 1;
            rows.place(row.line);
        }
        let video = row.get("video").map(|name| names.video(name));
        let score = row.get("score").map(|_| row.number("score")).transpose()?;
        let (_, ranked, row_extras) = &mut lists[place];
        let mut fields = row.unknown(&PREDICTION_COLUMNS);
        if !by_id && let Some(sentence) = fields.remove("query") {
            sentences.entry(place).or_insert(sentence);
        }
        row_extras.set(ranked.len(), fields);
        ranked.push(Prediction { video, span, score });
    }
    let queries = lists.into_iter().enumerate().map(|(place, (query, ranked, row_extras))| {
        let mut fields = Map::new();
        if let Some(sentence) = sentences.remove(&place) {
            fields.insert("sentence".to_owned(), sentence);
        }
        row_extras.move_into(&mut fields, "predictions", ranked.len());
        QueryPredictions { query, ranked, saliency: None, extra: Extra::new(fields) }
    });
    Ok(Predictions { rows, ..Predictions::any(queries.collect()) })
}

/// Writes predictions: `qid,video,start,end,score` and the other columns that were read. Fields of a query or of the file as
/// a whole have no place here.
///
/// # Errors
/// When the file holds several tasks, a score is not finite, or the file cannot be written.
pub(crate) fn write_predictions(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    let lists = crate::predictions::one_task(predictions, out)?;
    let columns = unknown_columns(lists);
    let mut text = WriterBuilder::new().from_writer(Vec::new());
    let known = PREDICTION_COLUMNS.into_iter().map(str::to_owned);
    let mut write = |row: Vec<String>| text.write_record(row).map_err(|error| out.fault(error));
    write(known.chain(columns.iter().map(|column| (*column).to_owned())).collect())?;
    for list in lists {
        if list.ranked.is_empty() {
            let mut row = vec![list.query.to_string()];
            row.resize(PREDICTION_COLUMNS.len() + columns.len(), String::new());
            write(row)?;
        }
        let fields = row_extras::of_rows(&list.extra, "predictions", list.ranked.len());
        for (Prediction { video, span, score }, fields) in list.ranked.iter().zip(fields) {
            if let Some(score) = score.filter(|score| !score.is_finite()) {
                return Err(out.fault(format!("query `{}`: {score} is not a finite score", list.query)));
            }
            let video = video.as_ref().map(ToString::to_string).unwrap_or_default();
            let score = score.map(|score| score.to_string()).unwrap_or_default();
            let mut row = vec![list.query.to_string(), video, span.start().to_string(), span.end().to_string(), score];
            row.extend(columns.iter().map(|column| fields.get(*column).map(cell).unwrap_or_default()));
            write(row)?;
        }
    }
    let text = text.into_inner().map_err(|error| out.fault(error.error()))?;
    out.put(&text)
}

fn unknown_columns(lists: &[QueryPredictions]) -> Vec<&str> {
    let mut columns = Vec::new();
    for list in lists {
        for fields in row_extras::of_rows(&list.extra, "predictions", list.ranked.len()) {
            for field in fields.keys().map(String::as_str) {
                if !columns.contains(&field) && !PREDICTION_COLUMNS.contains(&field) {
                    columns.push(field);
                }
            }
        }
    }
    columns
}

fn cell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads truth. The split is called after the file.
///
/// # Errors
/// When the header lacks `qid`, `video`, `start` or `end`, or at the first row that is no moment or that the policy refuses.
pub fn read_truth(source: &Source, policy: RowPolicy) -> Result<Split> {
    let mut places: HashMap<QueryId, usize> = HashMap::new();
    let mut queries: Vec<Truth> = Vec::new();
    let mut videos = VideoList::default();
    let known = FxHashSet::default();
    let mut names = Names::new(&known);
    let mut rows = RowCounts::default();
    let mut table = Table::open(source, &["qid", "video", "start", "end"], size_of::<Truth>() + 128)?;
    while let Some(row) = table.next_row()? {
        let video = names.video(row.text("video")?);
        let duration = row.get("duration").map(|_| row.number("duration")).transpose()?;
        if let Some(seconds) = duration.filter(|seconds| *seconds < 0.0) {
            return Err(row.fault("duration", format!("{seconds} s is not a duration")));
        }
        let id = QueryId::from(row.text("qid")?);
        let place = *places.entry(id).or_insert_with_key(|id| {
            let text = row.get("query").unwrap_or_default().to_owned();
            let kind = row.get("kind").map(str::to_owned);
            let extra = Extra::new(row.unknown(&TRUTH_COLUMNS));
            let video = Some(Video { id: video.clone(), duration });
            queries.push(Truth { video, kind, extra, ..Truth::bare(Query { id: id.clone(), text }) });
            queries.len() - 1
        });
        let truth = &mut queries[place];
        if truth.video.as_ref().is_some_and(|first| first.id != video) {
            truth.video = None;
        }
        let relevance = row.get("relevance").map(|_| row.number("relevance")).transpose()?.map(Relevance::try_from);
        let relevance = relevance.transpose().map_err(|problem| row.fault("relevance", problem))?;
        let raw = RawSpan::new(row.number("start")?, row.number("end")?);
        let judged = policy.judge(raw, duration, &mut rows);
        rows.place(row.line);
        videos.add(&video, duration);
        if let Some(span) = judged.map_err(|fault| source.bad_row(row.line, "end", fault))? {
            truth.moments.push(GradedMoment { moment: Moment { video, span }, relevance });
        }
    }
    let file = source.path().file_name().unwrap_or_default().to_owned();
    Ok(Split { name: source.stem().to_owned(), file, videos: videos.videos, queries, rows })
}

/// Writes truth: `qid,query,video,start,end,duration,relevance,kind`, a row a moment. A query without moments, pools, clip
/// ratings and unknown fields have no place here.
///
/// # Errors
/// When the file cannot be written.
pub fn write_truth(truths: &[Truth], out: &mut WholeFile) -> Result<()> {
    let mut text = WriterBuilder::new().from_writer(Vec::new());
    let mut write = |row: [String; 8]| text.write_record(row).map_err(|error| out.fault(error));
    write(TRUTH_COLUMNS.map(str::to_owned))?;
    for truth in truths {
        for graded in &truth.moments {
            let Moment { video, span } = &graded.moment;
            let duration = truth.video.as_ref().filter(|own| own.id == *video).and_then(|own| own.duration);
            write([
                truth.query.id.to_string(),
                truth.query.text.clone(),
                video.to_string(),
                span.start().to_string(),
                span.end().to_string(),
                duration.map(|seconds| seconds.to_string()).unwrap_or_default(),
                graded.relevance.map(|grade| grade.value().to_string()).unwrap_or_default(),
                truth.kind.clone().unwrap_or_default(),
            ])?;
        }
    }
    let text = text.into_inner().map_err(|error| out.fault(error.error()))?;
    out.put(&text)
}

/// A file with a header, a row at a time.
struct Table<'s> {
    source: &'s Source,
    reader: Reader<Metered>,
    header: StringRecord,
    record: StringRecord,
    allowed: Rc<Cell<u64>>,
    /// Columns that cost nothing beside the row: those of the layout, all of which may be there.
    known: usize,
    row: usize,
}

/// One row.
struct Row<'t> {
    source: &'t Source,
    header: &'t StringRecord,
    record: &'t StringRecord,
    line: usize,
}

impl<'s> Table<'s> {
    /// `row` is how many bytes one row becomes, at the most, beside its texts.
    fn open(source: &'s Source, required: &[&'static str], row: usize) -> Result<Self> {
        let allowed = Rc::new(Cell::new(source.limits().line));
        let stream = Metered { stream: Box::new(source.open()?), handed_out: 0, allowed: allowed.clone() };
        let mut reader = ReaderBuilder::new().trim(Trim::Headers).from_reader(stream);
        let header = reader.headers().map_err(|error| explain(source, error))?.clone();
        if header.len() > MOST_COLUMNS {
            return Err(source.record(1, "columns", format!("there are {}, more than {MOST_COLUMNS}", header.len())));
        }
        for column in required {
            if !header.iter().any(|name| name == *column) {
                let hint = format!("the first line names the columns: {}", PREDICTION_COLUMNS.join(","));
                return Err(source.record(1, *column, "there is no such column").with_hint(hint));
            }
        }
        for (place, name) in header.iter().enumerate() {
            if header.iter().take(place).any(|earlier| earlier == name) {
                return Err(source.record(1, shorten(name), "two columns have this name"));
            }
        }
        let known =
            header.iter().filter(|name| TRUTH_COLUMNS.contains(name) || PREDICTION_COLUMNS.contains(name)).count();
        Ok(Self { source, reader, header, record: StringRecord::new(), allowed, known, row })
    }

    /// The next row; what is made of one is counted here, texts and unknown columns among it.
    fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        let done = self.reader.position().byte();
        self.allowed.set(done.saturating_add(self.source.limits().line));
        if !self.reader.read_record(&mut self.record).map_err(|error| explain(self.source, error))? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, ::csv::Position::line) as usize;
        let unknown = self.record.len().saturating_sub(self.known);
        self.source.charge(line, self.row + self.record.as_slice().len() + unknown * CELL)?;
        Ok(Some(Row { source: self.source, header: &self.header, record: &self.record, line }))
    }
}

impl Row<'_> {
    /// A cell that is there and not empty.
    fn get(&self, column: &str) -> Option<&str> {
        let place = self.header.iter().position(|name| name == column)?;
        self.record.get(place).filter(|cell| !cell.is_empty())
    }

    fn text(&self, column: &str) -> Result<&str> {
        self.get(column).ok_or_else(|| self.fault(column, "is empty"))
    }

    fn number(&self, column: &str) -> Result<f64> {
        let text = self.text(column)?.trim();
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        value.ok_or_else(|| self.fault(column, format!("`{}` is not a finite number", shorten(text))))
    }

    /// Whether it has nothing but a `qid`.
    fn is_bare(&self) -> bool {
        self.header.iter().zip(self.record).all(|(name, cell)| name == "qid" || cell.is_empty())
    }

    fn unknown(&self, known: &[&str]) -> Map<String, Value> {
        let cells =
            self.header.iter().zip(self.record).filter(|(name, cell)| !known.contains(name) && !cell.is_empty());
        cells.map(|(name, cell)| (name.to_owned(), Value::from(cell))).collect()
    }

    fn fault(&self, column: &str, problem: impl ToString) -> ReadError {
        self.source.record(self.line, column, problem)
    }
}

fn explain(source: &Source, error: ::csv::Error) -> ReadError {
    let line = error.position().map_or(1, |position| position.line() as usize);
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let what = "a row".to_owned();
            ReadError::TooLarge { path: source.path().to_owned(), what, limit: source.limits().line }
        }
        ::csv::ErrorKind::Io(error) => source.io(error),
        ::csv::ErrorKind::Utf8 { .. } => source.not_utf8(line),
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            source.record(line, "columns", format!("there are {len}, not {expected_len} as in the first line"))
        }
        other => source.record(line, "row", format!("{other:?}")),
    }
}

/// A stream that ends in an error when one row, say through a quote that is never closed, takes too many bytes.
struct Metered {
    stream: Box<dyn Read>,
    handed_out: u64,
    /// Bytes from the beginning of the file; moved on with every row.
    allowed: Rc<Cell<u64>>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.handed_out > self.allowed.get() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.stream.read(buffer)?;
        self.handed_out += read as u64;
        Ok(read)
    }
}
