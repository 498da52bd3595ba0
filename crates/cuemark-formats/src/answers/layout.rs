//! Files of answers: one JSON object a line, an id and a text among whatever else.

use cuemark_core::{Extra, Prediction, Predictions, QueryId, QueryPredictions, RawSpan, RowCounts, Truth};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::{AnswerParser, Failure, ParsedSpan, Rule};
use crate::cursor::Cursor;
use crate::fault::{Fault, Walk};
use crate::predictions::one_task;
use crate::records::{self, Scratch, Seen};
use crate::{Result, Source, WholeFile};

/// Which fields of a line are read, and how.
#[derive(Debug, Clone, Default)]
pub struct AnswerReading {
    /// How spans are found in a text.
    pub parser: AnswerParser,
    /// The field that holds the query's id; points lead inside (`doc.qid`). Default: the first of [`ID_FIELDS`]
    pub id_field: Option<String>,
    /// The field that holds the text. Default: the first of [`TEXT_FIELDS`]
    pub text_field: Option<String>,
}

/// What ids are called: here, by lmms-eval, by VLMEvalKit.
pub const ID_FIELDS: [&str; 8] = ["qid", "query_id", "question_id", "id", "sample_id", "doc.qid", "doc_id", "index"];
/// What texts are called. VLMEvalKit's `answer` is the truth, so it comes last.
pub const TEXT_FIELDS: [&str; 10] = [
    "text",
    "prediction",
    "response",
    "filtered_resps",
    "resps",
    "output",
    "model_output",
    "generated_text",
    "pred",
    "answer",
];

/// Where the text of an answer is kept among a list's other fields.
const TEXT: &str = "text";
/// Where its parse is kept.
const PARSED: &str = "parsed";
/// Where the kind of failure is kept.
const FAILURE: &str = "failure";

/// Reads a file of answers. Of each line the id and the text are kept; with it, under `parsed`, every span with the bytes of
/// the text that it was read from and the rule, or under `failure` why there is none.
///
/// # Errors
/// The first line that is no object, has no id or no text, or repeats the id of an earlier one.
pub fn read(source: &Source, reading: &AnswerReading) -> Result<Predictions> {
    let (mut seen, mut queries) = (Seen::default(), Vec::new());
    let decode = |cursor: &mut Cursor<'_>, _: &mut Scratch<'_>| decode(cursor, reading);
    let rows: RowCounts = records::read(source, decode, |line, query: QueryPredictions| {
        seen.note(source, line, &query.query)?;
        queries.push(query);
        Ok(())
    })?;
    let mut predictions = Predictions { rows, ..Predictions::any(queries) };
    predictions.notes = vec![counts(&predictions).to_string()];
    Ok(predictions)
}

fn decode(cursor: &mut Cursor<'_>, reading: &AnswerReading) -> Walk<QueryPredictions> {
    let at = cursor.at();
    let Value::Object(record) = cursor.value()? else {
        return Err(Fault::new(at, "an answer is an object with an id and a text"));
    };
    let pick = |given: &Option<String>, usual: &[&str], what: &str| match given {
        Some(path) => field(&record, path)
            .ok_or_else(|| Fault::new(at, format!("there is no field `{}`", crate::fault::shorten(path)))),
        None => usual.iter().find_map(|path| field(&record, path)).ok_or_else(|| {
            let hint = format!("the {what} is one of `{}`; any other is named by a setting", usual.join("`, `"));
            Fault::new(at, format!("no field holds the {what}")).with_hint(hint)
        }),
    };
    let id = match pick(&reading.id_field, &ID_FIELDS, "id")? {
        Value::String(id) => QueryId::from(id.as_str()),
        Value::Number(id) if id.is_i64() || id.is_u64() => QueryId::new(id.to_string()),
        other => return Err(Fault::new(at, format!("`{}` is no id", crate::fault::shorten(&other.to_string())))),
    };
    let text = match pick(&reading.text_field, &TEXT_FIELDS, "text")? {
        Value::Null => String::new(),
        other => text_in(other).ok_or_else(|| Fault::new(at, "the text is no text"))?.to_owned(),
    };
    let mut list = QueryPredictions {
        query: id,
        ranked: Vec::new(),
        saliency: None,
        extra: Extra::new(Map::from_iter([(TEXT.to_owned(), text.into())])),
    };
    parse(&mut list, &reading.parser, None);
    Ok(list)
}

fn field<'v>(record: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    if let Some(value) = record.get(path) {
        return Some(value);
    }
    let (outer, inner) = path.split_once('.')?;
    field(record.get(outer)?.as_object()?, inner)
}

/// Text, or the first one in lists of lists, as lmms-eval has them.
fn text_in(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(several) => text_in(several.first()?),
        _ => None,
    }
}

/// Reads the text of `list` again.
fn parse(list: &mut QueryPredictions, parser: &AnswerParser, duration: Option<f64>) {
    let Some(text) = list.extra.get(TEXT).and_then(Value::as_str) else { return };
    let parsed = parser.parse(text, duration);
    let span = |found: &ParsedSpan| RawSpan::new(found.start, found.end).into_predicted().ok().map(|(span, _)| span);
    let spans: Vec<(ParsedSpan, _)> =
        parsed.spans.into_iter().filter_map(|found| span(&found).map(|span| (found, span))).collect();
    list.ranked = spans.iter().map(|(_, span)| Prediction { video: None, span: *span, score: None }).collect();
    let mut fields: Map<String, Value> = list
        .extra
        .iter()
        .filter(|(field, _)| *field != PARSED && *field != FAILURE)
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    match parsed.failure {
        Some(failure) => fields.insert(FAILURE.to_owned(), failure.name().into()),
        None => {
            let rows = spans.iter().map(|(found, _)| {
                let numbers: Vec<[usize; 2]> = found.numbers.iter().map(|number| [number.start, number.end]).collect();
                json!({ "bytes": [found.bytes.start, found.bytes.end], "numbers": numbers, "rule": found.rule.name() })
            });
            fields.insert(PARSED.to_owned(), rows.collect())
        }
    };
    list.extra = Extra::new(fields);
}

/// Reads every text again with the duration of its video: percent, frames from the end and `the last 5 seconds` need it.
pub fn with_durations(predictions: &mut Predictions, truths: &[Truth], parser: &AnswerParser) {
    let durations: FxHashMap<&QueryId, f64> =
        truths.iter().filter_map(|truth| Some((&truth.query.id, truth.duration()?))).collect();
    for list in predictions.tasks.iter_mut().flat_map(|task| &mut task.queries) {
        let duration = durations.get(&list.query).copied();
        if duration.is_some() {
            parse(list, parser, duration);
        }
    }
    predictions.notes = vec![counts(predictions).to_string()];
}

/// How many answers named a span, and why the others did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Answers.
    pub texts: usize,
    /// Answers that name a span.
    pub parsed: usize,
    /// Why the others name none, by the names of [`Failure`].
    pub failures: Vec<(Failure, usize)>,
    /// What made spans, by the names of [`Rule`].
    pub rules: Vec<(Rule, usize)>,
}

/// Counts what became of the answers of a file.
pub fn counts(predictions: &Predictions) -> AnswerCounts {
    let mut found = AnswerCounts::default();
    let (mut failures, mut rules) = ([0usize; Failure::ALL.len()], [0usize; Rule::ALL.len()]);
    for list in predictions.tasks.iter().flat_map(|task| &task.queries) {
        found.texts += 1;
        let failure = list.extra.get(FAILURE).and_then(Value::as_str);
        match Failure::ALL.iter().position(|known| Some(known.name()) == failure) {
            Some(kind) => failures[kind] += 1,
            None => found.parsed += 1,
        }
        for row in list.extra.get(PARSED).and_then(Value::as_array).into_iter().flatten() {
            let rule = row.get("rule").and_then(Value::as_str);
            if let Some(kind) = Rule::ALL.iter().position(|known| Some(known.name()) == rule) {
                rules[kind] += 1;
            }
        }
    }
    found.failures = Failure::ALL.into_iter().zip(failures).filter(|(_, n)| *n > 0).collect();
    found.rules = Rule::ALL.into_iter().zip(rules).filter(|(_, n)| *n > 0).collect();
    found
}

impl std::fmt::Display for AnswerCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failed = self.texts - self.parsed;
        let rate = if self.texts == 0 { 0.0 } else { 100.0 * failed as f64 / self.texts as f64 };
        write!(f, "answers: {} of {} texts name a span; {failed} ({rate:.1} %) name none", self.parsed, self.texts)?;
        for (place, (kind, n)) in self.failures.iter().enumerate() {
            write!(f, "{}{kind} {n}", if place == 0 { ": " } else { ", " })?;
        }
        for (place, (rule, n)) in self.rules.iter().enumerate() {
            write!(f, "{}{rule} {n}", if place == 0 { "; read by " } else { ", " })?;
        }
        Ok(())
    }
}

/// Writes answers: the text that was read, or one that says the same. Videos and scores have no place in it.
///
/// # Errors
/// When the file holds several tasks, or cannot be written.
pub fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    for query in one_task(predictions, out)? {
        if let Some(score) = query.ranked.iter().filter_map(|found| found.score).find(|score| !score.is_finite()) {
            return Err(out.fault(format!("{score} is not a finite number")));
        }
        let spans = query.ranked.iter().map(|found| format!("from {} s to {} s", found.span.start(), found.span.end()));
        let said = spans.collect::<Vec<_>>().join("; ");
        let kept = query.extra.get(TEXT).and_then(Value::as_str).map(str::to_owned);
        let said = kept.unwrap_or(if said.is_empty() { "There is no such moment.".to_owned() } else { said });
        out.put_json(&json!({ "qid": query.query.as_str(), "text": said }))?;
        out.put(b"\n")?;
    }
    Ok(())
}
