//! TREC's run and qrels files, with moments as documents.
//!
//! A run line is `QID Q0 DOCUMENT RANK SCORE TAG`, a qrels line `QID 0 DOCUMENT RELEVANCE`, columns apart by white space. The
//! document of a moment is `VIDEO:START-END`, seconds: `3MSZA:2.4-9.1`. The video may hold colons itself and may be empty
//! (`:2.4-9.1`) in a run whose truth names it.
//!
//! A query's predictions are put in the order of RANK (equal ranks in file order); its lines need not stand together. A TAG
//! other than `cuemark` is kept. A run has no place for queries without predictions or for unknown fields, and a score it
//! must have: where none is known, the negative rank is written.

use std::collections::HashMap;

use cuemark_core::{
    Extra, GradedMoment, Moment, Prediction, Predictions, Query, QueryId, QueryPredictions, RawSpan, Relevance,
    RowCounts, RowPolicy, Split, Truth, VideoId,
};
use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::cuemark_jsonl::VideoList;
use crate::fault::shorten;
use crate::names::Names;
use crate::{Result, Source, WholeFile};

const TAG: &str = "cuemark";
/// Two bounds of some 310 digits each, the most that a double takes when written out, and a `-`.
const LONGEST_SPAN: usize = 1_000;

/// One row: as it is gathered and, in the end, once more as it is kept.
const ROW: usize = size_of::<(i64, Prediction)>() + size_of::<Prediction>() / 2;
/// One query beside its rows: its id, its place, what is gathered and what is kept of it.
const QUERY: usize = 2 * size_of::<Truth>() + 64;

/// Reads a run.
///
/// # Errors
/// The first line that does not have six columns, a moment as its document, a rank and a finite score.
pub(crate) fn read_run(source: &Source) -> Result<Predictions> {
    let mut places: HashMap<QueryId, usize> = HashMap::new();
    let mut lists: Vec<RunList> = Vec::new();
    let known = FxHashSet::default();
    let mut names = Names::new(&known);
    let mut rows = RowCounts::default();
    source.for_each_line(|line, text| {
        let [qid, _, document, rank, score, tag] = columns(source, line, text)?;
        let (video, raw) = moment(source, line, document)?;
        let (span, fault) = raw.into_predicted().map_err(|error| source.record(line, "document", error))?;
        if let Some(fault) = fault {
            rows.count(fault);
            rows.changed += 1;
            rows.place(line);
        }
        let rank: i64 = rank.parse().map_err(|_| source.record(line, "rank", not_a(rank, "a whole number")))?;
        let score = number(source, line, "score", score)?;
        let id = QueryId::from(qid);
        if !places.contains_key(&id) {
            source.charge(line, QUERY + qid.len() + tag.len())?;
        }
        let place = *places.entry(id).or_insert_with_key(|id| {
            lists.push(RunList { query: id.clone(), tag: tag.to_owned(), ranked: Vec::new() });
            lists.len() - 1
        });
        let video = (!video.is_empty()).then(|| names.video(video));
        source.charge(line, ROW)?;
        lists[place].ranked.push((rank, Prediction { video, span, score: Some(score) }));
        Ok(())
    })?;
    Ok(Predictions { rows, ..Predictions::any(lists.into_iter().map(RunList::finish).collect()) })
}

/// The lines of one query.
struct RunList {
    query: QueryId,
    tag: String,
    ranked: Vec<(i64, Prediction)>,
}

impl RunList {
    fn finish(mut self) -> QueryPredictions {
        self.ranked.sort_by_key(|(rank, _)| *rank);
        let mut extra = Extra::default();
        if self.tag != TAG {
            extra.insert("tag", Value::String(self.tag));
        }
        let ranked = self.ranked.into_iter().map(|(_, prediction)| prediction).collect();
        QueryPredictions { query: self.query, ranked, saliency: None, extra }
    }
}

/// Writes qrels: `QID 0 VIDEO:START-END RELEVANCE`, 1 where the truth gives no grade. Sentences have no place here.
///
/// # Errors
/// When a name holds white space, or the file cannot be written.
pub fn write_qrels(truths: &[Truth], out: &mut WholeFile) -> Result<()> {
    for truth in truths {
        for graded in &truth.moments {
            let Moment { video, span } = &graded.moment;
            for name in [truth.query.id.as_str(), video.as_str()] {
                if name.contains(char::is_whitespace) {
                    return Err(out.fault(format!("`{}` holds white space, which parts the columns", shorten(name))));
                }
            }
            let relevance = graded.relevance.map_or(1.0, Relevance::value);
            let line = format!("{} 0 {video}:{}-{} {relevance}\n", truth.query.id, span.start(), span.end());
            out.put(line.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes a run.
///
/// # Errors
/// When the file holds several tasks, a name holds white space, a score is not finite, or the file cannot be written.
pub(crate) fn write_run(predictions: &Predictions, out: &mut WholeFile) -> Result<()> {
    for query in crate::predictions::one_task(predictions, out)? {
        let tag = query.extra.get("tag").and_then(Value::as_str).unwrap_or(TAG);
        for (place, Prediction { video, span, score }) in query.ranked.iter().enumerate() {
            let video = video.as_ref().map_or("", VideoId::as_str);
            for name in [query.query.as_str(), video, tag] {
                if name.contains(char::is_whitespace) {
                    return Err(out.fault(format!("`{}` holds white space, which parts the columns", shorten(name))));
                }
            }
            let rank = place + 1;
            let score = score.unwrap_or(-(rank as f64));
            if !score.is_finite() {
                return Err(out.fault(format!("query `{}`: {score} is not a finite score", query.query)));
            }
            let line = format!("{} Q0 {video}:{}-{} {rank} {score} {tag}\n", query.query, span.start(), span.end());
            out.put(line.as_bytes())?;
        }
    }
    Ok(())
}

/// Reads qrels as graded truth; queries have no sentences. The split is called after the file.
///
/// # Errors
/// The first line that does not have four columns, a moment as its document and a relevance, or whose span is no span.
pub fn read_qrels(source: &Source) -> Result<Split> {
    let mut places: HashMap<QueryId, usize> = HashMap::new();
    let mut queries: Vec<Truth> = Vec::new();
    let known = FxHashSet::default();
    let mut names = Names::new(&known);
    let mut rows = RowCounts::default();
    source.for_each_line(|line, text| {
        let [qid, _, document, relevance] = columns(source, line, text)?;
        let (video, raw) = moment(source, line, document)?;
        if video.is_empty() {
            return Err(source.record(line, "document", not_a(document, "a moment: it names no video")));
        }
        let grade = number(source, line, "relevance", relevance)?;
        let relevance = Relevance::try_from(grade).map_err(|problem| source.record(line, "relevance", problem))?;
        let judged = RowPolicy::Keep.judge(raw, None, &mut rows);
        let id = QueryId::from(qid);
        source.charge(line, ROW + if places.contains_key(&id) { 0 } else { QUERY + qid.len() })?;
        let place = *places.entry(id).or_insert_with_key(|id| {
            queries.push(Truth::bare(Query { id: id.clone(), text: String::new() }));
            queries.len() - 1
        });
        if let Some(span) = judged.map_err(|fault| source.bad_row(line, "document", fault))? {
            let moment = Moment { video: names.video(video), span };
            queries[place].moments.push(GradedMoment { moment, relevance: Some(relevance) });
        }
        Ok(())
    })?;
    let mut videos = VideoList::default();
    queries.iter().for_each(|truth| videos.note(truth));
    let file = source.path().file_name().unwrap_or_default().to_owned();
    Ok(Split { name: source.stem().to_owned(), file, videos: videos.videos, queries, rows })
}

fn columns<'t, const N: usize>(source: &Source, line: usize, text: &'t str) -> Result<[&'t str; N]> {
    let mut columns = [""; N];
    let mut count = 0;
    for column in text.split_whitespace() {
        if let Some(slot) = columns.get_mut(count) {
            *slot = column;
        }
        count += 1;
    }
    if count == N { Ok(columns) } else { Err(source.record(line, "columns", format!("there are {count}, not {N}"))) }
}

/// The video and the span that a document stands for.
fn moment<'t>(source: &Source, line: usize, document: &'t str) -> Result<(&'t str, RawSpan)> {
    let split = document.rsplit_once(':').filter(|(_, span)| span.len() <= LONGEST_SPAN);
    let moment = split.and_then(|(video, span)| Some((video, raw_span(span)?)));
    moment.ok_or_else(|| {
        let problem = not_a(document, "a moment");
        source.record(line, "document", problem).with_hint("a moment is written VIDEO:START-END, in seconds")
    })
}

/// `START-END`; either may have a sign or an exponent, so the first `-` that leaves a number on both sides parts them.
fn raw_span(text: &str) -> Option<RawSpan> {
    text.match_indices('-').find_map(|(at, _)| {
        let (start, end) = (text.get(..at)?.parse().ok()?, text.get(at + 1..)?.parse().ok()?);
        Some(RawSpan::new(start, end))
    })
}

fn number(source: &Source, line: usize, field: &str, text: &str) -> Result<f64> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| source.record(line, field, not_a(text, "a finite number")))
}

fn not_a(text: &str, wanted: &str) -> String {
    format!("`{}` is not {wanted}", shorten(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_parted_where_both_sides_are_numbers() {
        for (text, start, end) in
            [("2.4-9.1", 2.4, 9.1), ("-2-4", -2.0, 4.0), ("1e-5-3e-2", 1e-5, 3e-2), ("5--3", 5.0, -3.0)]
        {
            assert_eq!(raw_span(text), Some(RawSpan::new(start, end)), "{text}");
        }
        for text in ["", "-", "2.4", "2.4-", "-9", "a-b", "1-2-x"] {
            assert_eq!(raw_span(text), None, "{text}");
        }
    }
}
