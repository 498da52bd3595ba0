//! Predictions as Charades-STA writes its truth: `VIDEO START END##SENTENCE`, a line each, best first, and no ids.
//!
//! A score may stand after the end: `AO8RW 0.0 6.9 0.83##a person opens the door.` Lines with one video and one sentence are
//! one query's, in file order; [`match_sentences`](crate::match_sentences) gives them the truth's id. A line needs a sentence
//! to be written, so only lists that kept theirs can be.

use std::collections::HashMap;

use cuemark_core::{Extra, Prediction, Predictions, QueryId, QueryPredictions, RawSpan, RowCounts};
use rustc_hash::FxHashSet;
use serde_json::{Map, Value};

use crate::fault::shorten;
use crate::join::made_up;
use crate::names::Names;
use crate::{Result, Source, WholeFile};

/// One query beside its rows: its id twice, its place, its sentence.
const QUERY: usize = 2 * size_of::<QueryPredictions>() + 192;

/// Whether a first line looks like one of these.
pub(crate) fn looks_like(line: &str) -> bool {
    let Some((place, _)) = line.split_once("##") else { return false };
    let columns: Vec<&str> = place.split_whitespace().collect();
    matches!(columns.as_slice(), [_, numbers @ ..] if (2..=3).contains(&numbers.len()) && numbers.iter().all(|n| n.parse::<f64>().is_ok()))
}

/// Reads predictions.
///
/// # Errors
/// The first line that has no video, two finite times and a sentence behind `##`.
pub(crate) fn read(source: &Source) -> Result<Predictions> {
    let mut places: HashMap<QueryId, usize> = HashMap::new();
    let mut queries: Vec<QueryPredictions> = Vec::new();
    let known = FxHashSet::default();
    let mut names = Names::new(&known);
    let mut rows = RowCounts::default();
    source.for_each_line(|line, text| {
        let Some((place, sentence)) = text.split_once("##") else {
            return Err(source.record(line, "sentence", "there is no `##` before it"));
        };
        let number = |field: &str, text: &str| {
            let value = text.parse().ok().filter(|value: &f64| value.is_finite());
            value.ok_or_else(|| source.record(line, field, format!("`{}` is not a finite number", shorten(text))))
        };
        let columns: Vec<&str> = place.split_whitespace().collect();
        let (video, start, end, score) = match columns.as_slice() {
            [video, start, end] => (*video, number("start", start)?, number("end", end)?, None),
            [video, start, end, score] => {
                (*video, number("start", start)?, number("end", end)?, Some(number("score", score)?))
            }
            other => {
                let problem = format!("there are {} before `##`, not a video, a start and an end", other.len());
                return Err(source.record(line, "columns", problem));
            }
        };
        let raw = RawSpan::new(start, end);
        let (span, fault) = raw.into_predicted().map_err(|error| source.record(line, "start", error))?;
        if let Some(fault) = fault {
            rows.count(fault);
            rows.changed += 1;
            rows.place(line);
        }
        let id = made_up(video, sentence);
        if !places.contains_key(&id) {
            source.charge(line, QUERY + 2 * text.len())?;
        }
        let place = *places.entry(id).or_insert_with_key(|id| {
            let fields = Map::from_iter([("sentence".to_owned(), Value::from(sentence))]);
            let extra = Extra::new(fields);
            queries.push(QueryPredictions { query: id.clone(), ranked: Vec::new(), saliency: None, extra });
            queries.len() - 1
        });
        source.charge(line, 2 * size_of::<Prediction>())?;
        queries[place].ranked.push(Prediction { video: Some(names.video(video)), span, score });
        Ok(())
    })?;
    Ok(Predictions { rows, ..Predictions::any(queries) })
}

/// Writes predictions.
///
/// # Errors
/// When the file holds several tasks, a list has no sentence or a prediction no video, a score is not finite, or the file
/// cannot be written.
pub(crate) fn write(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    for list in crate::predictions::one_task(predictions, out)? {
        let text = |field: &str| list.extra.get(field).and_then(Value::as_str);
        let Some(sentence) = text("sentence").or_else(|| text("query")) else {
            let problem = format!("query `{}` has no sentence, which this layout names it by", list.query);
            return Err(out.fault(problem).with_hint("the layouts `cuemark` and `csv` name queries by their ids"));
        };
        let sentence = sentence.replace(['\n', '\r'], " ");
        for Prediction { video, span, score } in &list.ranked {
            let Some(video) = video.as_ref().filter(|video| !video.as_str().contains(char::is_whitespace)) else {
                let problem = format!("a prediction of query `{}` names no video, or one with white space", list.query);
                return Err(out.fault(problem));
            };
            let score = match score {
                Some(score) if !score.is_finite() => return Err(out.fault(format!("{score} is not a finite score"))),
                Some(score) => format!(" {score}"),
                None => String::new(),
            };
            out.put(format!("{video} {} {}{score}##{sentence}\n", span.start(), span.end()).as_bytes())?;
        }
    }
    Ok(())
}
