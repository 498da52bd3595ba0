//! What every prediction layout has in common: spans, scores and ranked lists.

use cuemark_core::{Extra, QueryId, QueryPredictions, RawSpan, RowCounts, Span};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::cursor::Cursor;
use crate::fault::{Fault, Walk};
use crate::records::Scratch;

/// `[start, end]` in seconds.
#[inline]
pub(crate) fn span(cursor: &mut Cursor<'_>, rows: &mut RowCounts) -> Walk<Span> {
    let at = cursor.at();
    match cursor.numbers::<2>()? {
        ([start, end], 2) => judge(at, RawSpan::new(start, end), rows),
        _ => Err(Fault::new(at, "a span is a start and an end")),
    }
}

/// `[start, end, score]`, or `[start, end]`.
#[inline]
pub(crate) fn window(cursor: &mut Cursor<'_>, rows: &mut RowCounts) -> Walk<(Span, Option<f64>)> {
    let at = cursor.at();
    let ([start, end, score], count) = cursor.numbers::<3>()?;
    if count < 2 {
        return Err(Fault::new(at, "a prediction is a start, an end and perhaps a score"));
    }
    Ok((judge(at, RawSpan::new(start, end), rows)?, (count == 3).then_some(score)))
}

/// The span of a prediction as it is scored; what had to be read differently is counted.
#[inline]
pub(crate) fn judge(at: usize, raw: RawSpan, rows: &mut RowCounts) -> Walk<Span> {
    let (span, fault) = raw.into_predicted().map_err(|error| Fault::new(at, error))?;
    if let Some(fault) = fault {
        rows.count(fault);
        rows.changed += 1;
    }
    Ok(span)
}

/// A list of one number per clip, or `null`.
pub(crate) fn saliency(cursor: &mut Cursor<'_>) -> Walk<Option<Vec<f64>>> {
    if cursor.null() {
        return Ok(None);
    }
    let mut scores = Vec::new();
    cursor.array::<f64>(|cursor, _| {
        scores.push(cursor.number()?);
        Ok(())
    })?;
    scores.shrink_to_fit();
    Ok(Some(scores))
}

/// The list that `scratch` holds, in exactly the memory it needs.
pub(crate) fn list(
    query: QueryId,
    scratch: &mut Scratch<'_>,
    saliency: Option<Vec<f64>>,
    fields: Map<String, Value>,
) -> QueryPredictions {
    QueryPredictions { query, ranked: scratch.ranked.drain(..).collect(), saliency, extra: Extra::new(fields) }
}

/// A number that JSON can hold: writing NaN or an infinity is an error, not a `null`.
pub(crate) struct Finite(pub(crate) f64);

impl Serialize for Finite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            Err(S::Error::custom(format!("{} is not a finite number", self.0)))
        }
    }
}

/// Numbers that JSON can hold.
pub(crate) struct FiniteList<'a>(pub(crate) &'a [f64]);

impl Serialize for FiniteList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|value| Finite(*value)))
    }
}

/// A query id as the published evaluators expect it: a number where it is one, else text.
pub(crate) struct ForeignId<'a>(pub(crate) &'a QueryId);

impl Serialize for ForeignId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_str();
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => serializer.serialize_i64(number),
            _ => serializer.serialize_str(text),
        }
    }
}
