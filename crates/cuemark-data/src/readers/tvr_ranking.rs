//! TVR-Ranking: graded lists of moments for imprecise queries, and the ratings they were made from.
//!
//! `val.json`, `test.json` and `train_top*.json` are JSON lists of query-moment pairs: `pair_id`, `query_id`, `query`,
//! `video_name`, `timestamp` (seconds), `duration`, `caption`, `similarity`, `relevance`. All pairs of a `query_id` make
//! one query with graded moments, in file order; 500 queries in val, 2,781 in test, 69,317 in the training lists.
//!
//! `raw_annotation.csv` (`pair_id,worker,relevance`, grades 0 to 4) has 227,808 ratings of 96,483 pairs: 79,062 pairs
//! have two and 17,421 four. `video_name_duration_id.json` gives the corpus, 19,614 clips with duration and index.
//!
//! Oddities: a worker may rate a pair twice; the training lists of the pseudo sets have similarities instead of grades, which
//! stay with each moment as extra fields.

use cuemark_core::{GradedMoment, Moment, Query, QueryId, RawSpan, Relevance, Split, Truth};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::card::{Counts, DatasetCard, Expected, FileCard, QueryIds, SideCard};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::SplitBuilder;
use crate::{Durations, Layout, ReadOptions};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "tvr-ranking",
    title: "TVR-Ranking: imprecise queries with graded moments from all of TVR",
    origin: "Ranking-VMR/TVR-Ranking",
    licence: "CC0-1.0",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train-top1", "train_top01.json", &LAYOUT).also(&["train_top1.json"]).repeating("train-top40"),
        FileCard::new("train-top20", "train_top20.json", &LAYOUT).repeating("train-top40"),
        FileCard::new("train-top40", "train_top40.json", &LAYOUT).expecting(Expected::queries(69_317)),
        FileCard::new("val", "val.json", &LAYOUT).expecting(Expected::queries(500)),
        FileCard::new("test", "test.json", &LAYOUT).expecting(Expected::queries(2781)),
    ],
    sides: &[
        SideCard {
            paths: &["raw_annotation.csv"],
            about: "what each worker said about each query-moment pair",
            expected: &[("ratings", 227_808), ("pairs", 96_483)],
            count: count_ratings,
        },
        SideCard {
            paths: &["video_name_duration_id.json"],
            about: "duration and corpus index of every clip",
            expected: &[("videos", 19_614)],
            count: |sources| {
                let counts = sources.iter().map(|source| Ok(("videos".to_owned(), Durations::read(source)?.len())));
                counts.collect()
            },
        },
        SideCard {
            paths: &["ReLoCLNet_top40_best_val_predictions.json"],
            about: "the authors' predictions for the val queries, best first",
            expected: &[("queries", 500), ("predictions", 20_000)],
            count: count_predictions,
        },
    ],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "tvr-ranking",
    about: "[{pair_id, query_id, query, video_name, timestamp, duration, relevance, …}], seconds",
    looks_like: |peek| peek.opens_with("[{") && peek.has_all(2, &["query_id", "query", "video_name", "timestamp"]),
    read,
};

/// One query-moment pair of a graded list, as the file has it.
#[derive(Debug, Clone)]
pub struct RankedPair {
    /// What the ratings call it, where the file says so.
    pub pair_id: Option<u64>,
    /// The query.
    pub query: Query,
    /// The video's name.
    pub video: String,
    /// The moment, in seconds, not judged yet.
    pub raw: RawSpan,
    /// How long the video lasts, in seconds, where the file says so.
    pub duration: Option<f64>,
    /// The description that the moment had in TVR.
    pub caption: Option<String>,
    /// How similar caption and query are.
    pub similarity: Option<f64>,
    /// The consensus of the ratings.
    pub relevance: Option<Relevance>,
    /// The line it stands on.
    pub line: usize,
}

#[derive(Deserialize)]
struct Record {
    pair_id: Option<u64>,
    query_id: PublishedId,
    query: String,
    video_name: String,
    timestamp: [f64; 2],
    duration: Option<f64>,
    caption: Option<String>,
    similarity: Option<f64>,
    relevance: Option<Relevance>,
}

/// Reads the pairs of a graded list one by one, in file order, with what the splits leave out.
///
/// # Errors
/// When the file is no such list.
pub fn read_ranked_pairs(source: &Source) -> Result<Vec<RankedPair>> {
    let document = Document::read(source)?;
    let members = document.root().elements()?;
    let records: Vec<Record> = decode::members(&members)?;
    let pairs = members.iter().zip(records).map(|(member, record)| RankedPair {
        pair_id: record.pair_id,
        query: Query { id: record.query_id.to_query_id(), text: record.query },
        video: record.video_name,
        raw: RawSpan::new(record.timestamp[0], record.timestamp[1]),
        duration: record.duration,
        caption: record.caption,
        similarity: record.similarity,
        relevance: record.relevance,
        line: member.line(),
    });
    Ok(pairs.collect())
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    let mut truths: IndexMap<QueryId, Truth> = IndexMap::new();
    let mut similarities: FxHashMap<QueryId, Vec<Value>> = FxHashMap::default();
    for (index, pair) in read_ranked_pairs(source)?.into_iter().enumerate() {
        let place = |field: &str| (pair.line, format!("[{index}].{field}"));
        let duration = pair.duration.or_else(|| options.duration(&pair.video));
        let video = split.video(&pair.video, duration, || place("duration"))?;
        split.note(&video.id, pair.raw, &pair.query.text);
        if let Some(span) = split.span(pair.raw, video.duration, |_| place("timestamp"))? {
            let truth = truths.entry(pair.query.id.clone()).or_insert_with(|| Truth::bare(pair.query));
            let moment = Moment { video: video.id, span };
            truth.moments.push(GradedMoment { moment, relevance: pair.relevance });
            // Training lists have no grades but similarities, which training weighs by.
            if let (None, Some(similarity)) = (pair.relevance, pair.similarity) {
                let fields = similarities.entry(truth.query.id.clone()).or_default();
                fields.push(json!({ "similarity": similarity }));
            }
        }
    }
    for (query, fields) in similarities {
        if let Some(truth) = truths.get_mut(&query).filter(|truth| truth.moments.len() == fields.len()) {
            truth.extra.insert("moments", fields.into());
        }
    }
    truths.into_values().for_each(|truth| split.push(truth));
    Ok(vec![split.finish()])
}

/// What one worker said about one query-moment pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Rating {
    /// The pair, as the graded lists number it.
    pub pair_id: u64,
    /// Who rated it; the same worker may rate a pair twice.
    pub worker: u64,
    /// The grade, 0 (nothing matches) to 4 (everything does).
    pub relevance: u8,
}

/// Reads `raw_annotation.csv`, in file order.
///
/// # Errors
/// When a row is not `pair_id,worker,relevance` with a grade of 0 to 4.
pub fn read_ratings(source: &Source) -> Result<Vec<Rating>> {
    let mut ratings = Vec::new();
    for (line, rating) in decode::csv_records::<Rating>(source)? {
        if rating.relevance > 4 {
            return Err(source.record(line, "relevance", format!("grade {} is not between 0 and 4", rating.relevance)));
        }
        ratings.push(rating);
    }
    Ok(ratings)
}

fn count_ratings(sources: &[Source]) -> Result<Counts> {
    let mut counts = Vec::new();
    for source in sources {
        let ratings = read_ratings(source)?;
        let pairs: FxHashSet<u64> = ratings.iter().map(|rating| rating.pair_id).collect();
        counts.extend([("ratings".to_owned(), ratings.len()), ("pairs".to_owned(), pairs.len())]);
    }
    Ok(counts)
}

fn count_predictions(sources: &[Source]) -> Result<Counts> {
    #[derive(Deserialize)]
    struct Query {
        predictions: Vec<serde::de::IgnoredAny>,
    }
    let mut counts = Vec::new();
    for source in sources {
        let document = Document::read(source)?;
        let queries: Vec<Query> = decode::members(&document.root().elements()?)?;
        let predictions = queries.iter().map(|query| query.predictions.len()).sum();
        counts.extend([("queries".to_owned(), queries.len()), ("predictions".to_owned(), predictions)]);
    }
    Ok(counts)
}
