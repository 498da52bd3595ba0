//! Vectors of the words of queries that somebody else computed: published per query, or by a frozen encoder.

use std::sync::Arc;

use cuemark_core::{ClipLen, QueryId, VideoId};
use cuemark_features::{FeatureSource, Features, Normalise, OpenOptions, RowTime, open};
use cuemark_models::{Input, Phrases, QueryBatch, Text, real_steps};
use cuemark_tensor::{DType, Device, Tensor};

use crate::examples::{CutQueries, Examples};
use crate::published_text::PublishedText;
use crate::{DataConfig, Result, TrainError};

/// What the stream of a store without names is called.
const STREAM: &str = "queries";

/// What QVHighlights' files of query features are called: `qid` and the query's number.
const FILE_PREFIX: &str = "qid";

/// Where vectors of words come from, other than from a table or an encoder that the run trains.
pub(crate) struct QueryFeatures {
    from: Vectors,
    normalise: Normalise,
}

enum Vectors {
    Nobody,
    Store(Stored),
    Frozen(Arc<PublishedText>),
}

struct Stored {
    source: Arc<dyn FeatureSource>,
    stream: String,
    /// What stands before the ids of queries.
    prefix: &'static str,
}

impl QueryFeatures {
    /// What a run file names, for any model.
    ///
    /// # Errors
    /// When the store is not there or has no such stream.
    pub(crate) fn open(data: &DataConfig, text: Option<&Arc<PublishedText>>) -> Result<Self> {
        let from = match (text, &data.query_features, &data.queries) {
            (Some(text), ..) if text.kept().is_some() => Vectors::Frozen(Arc::clone(text)),
            (None, Some(path), stream) => {
                let options = OpenOptions {
                    stream: stream.clone().unwrap_or_else(|| STREAM.to_owned()),
                    // A row is a word: it has no length in time, and nobody asks for one.
                    row_time: ClipLen::new(1.0).map(RowTime::Clip),
                    ..OpenOptions::default()
                };
                let source = open(path, &options)?;
                // A store of ours has names of its own; the only one needs not be said.
                let only = match source.streams()[..] {
                    [only] if stream.is_none() => Some(only.to_owned()),
                    _ => None,
                };
                let stream = only.unwrap_or(options.stream);
                source.origin(&stream)?;
                Vectors::Store(Stored::new(source, stream))
            }
            (None, None, Some(stream)) => {
                let options = OpenOptions { stream: data.stream.clone(), ..OpenOptions::default() };
                let source = open(&data.features(), &options)?;
                source.origin(stream)?;
                Vectors::Store(Stored::new(source, stream.clone()))
            }
            _ => Vectors::Nobody,
        };
        Ok(Self { from, normalise: Normalise::None })
    }

    /// The same for a model that wants rows as `input` says. What stands for tokens is never normalised: the models that read
    /// tokens take the mean of an encoder's own vectors.
    pub(crate) fn prepared(mut self, input: &Input) -> Self {
        self.normalise = words_normalised(input);
        self
    }

    /// Width of a word's vector; `None` when nobody computed any.
    ///
    /// # Errors
    /// When the store has no query.
    pub(crate) fn width(&self) -> Result<Option<usize>> {
        match &self.from {
            Vectors::Nobody => Ok(None),
            Vectors::Frozen(text) => Ok(Some(text.width())),
            Vectors::Store(stored) => {
                let Some(first) = stored.source.videos(&stored.stream).first().copied() else {
                    return Err(TrainError::Folder {
                        path: stored.source.origin(&stored.stream)?.path.to_owned(),
                        problem: format!("stream `{}` has no query", stored.stream),
                        hint: "extract or convert features first".into(),
                    });
                };
                Ok(Some(stored.source.get(first, &stored.stream)?.width()))
            }
        }
    }

    /// The queries with the vectors of their words, and of the words of their phrases; as they are where nobody computed any.
    ///
    /// # Errors
    /// For a query that the store does not have, or has no row for.
    pub(crate) fn fill(&self, queries: QueryBatch) -> Result<QueryBatch> {
        if queries.words.dim(2)? > 0 {
            return Ok(queries); // it was done before
        }
        match &self.from {
            Vectors::Nobody => Ok(queries),
            Vectors::Store(stored) => {
                let rows = queries.ids.iter().map(|query| stored.rows(query)).collect::<Result<Vec<_>>>()?;
                self.with_words(queries, rows)
            }
            Vectors::Frozen(text) => {
                let ids = tokens(&queries.word_ids, &queries.lengths)?;
                let phrases = match queries.phrases {
                    Some(phrases) => {
                        let ids = tokens(&phrases.word_ids, &phrases.lengths)?;
                        Some(self.with_phrase_words(phrases, frozen(text, &ids)?)?)
                    }
                    None => None,
                };
                self.with_words(QueryBatch { phrases, ..queries }, frozen(text, &ids)?)
            }
        }
    }

    /// How many queries have more words than a model reads; 0 for models that read all.
    pub(crate) fn cut_queries(&self, examples: &Examples, limit: Option<usize>) -> Result<CutQueries> {
        let Some(words) = limit else { return Ok(CutQueries::default()) };
        let mut cut = CutQueries { queries: 0, words };
        let mut last = None;
        // Examples of one query stand together.
        for example in examples.list.iter().filter(|example| last.replace(example.truth) != Some(example.truth)) {
            let count = match &self.from {
                Vectors::Store(stored) => stored.rows(&example.query)?.rows(),
                Vectors::Nobody | Vectors::Frozen(_) => example.words.len(),
            };
            cut.queries += usize::from(count > words);
        }
        Ok(cut)
    }

    fn with_words(&self, queries: QueryBatch, rows: Vec<Features>) -> Result<QueryBatch> {
        let rows: Vec<Features> = rows.into_iter().map(|rows| self.normalise.apply(rows)).collect();
        let (words, lengths) = stacked(&rows)?;
        let longest = words.dim(1)?;
        let mask = real_steps(&lengths, longest, &Device::Cpu)?;
        // Numbers of tokens stay where vectors are of tokens; published features do not say which words their rows are of.
        let word_ids = match &self.from {
            Vectors::Frozen(_) if queries.word_ids.dim(1)? == longest => queries.word_ids,
            _ => Tensor::zeros((rows.len(), longest), DType::U32, &Device::Cpu)?,
        };
        Ok(QueryBatch { words, word_ids, lengths, mask, ..queries })
    }

    fn with_phrase_words(&self, phrases: Phrases, rows: Vec<Features>) -> Result<Phrases> {
        let rows: Vec<Features> = rows.into_iter().map(|rows| self.normalise.apply(rows)).collect();
        if rows.is_empty() {
            return Ok(phrases);
        }
        let (words, lengths) = stacked(&rows)?;
        Ok(Phrases { words: Some(words), lengths, ..phrases })
    }
}

/// What is done to rows that stand for words.
pub(crate) fn words_normalised(input: &Input) -> Normalise {
    match input.text {
        Text::Tokens => Normalise::None,
        Text::Words => input.normalise_words.unwrap_or(input.normalise),
    }
}

impl Stored {
    fn new(source: Arc<dyn FeatureSource>, stream: String) -> Self {
        let number = |name: &str| name.strip_prefix(FILE_PREFIX).is_some_and(|rest| rest.parse::<u64>().is_ok());
        let named = source.videos(&stream).iter().all(|query| number(query.as_str()));
        Self { source, stream, prefix: if named { FILE_PREFIX } else { "" } }
    }

    /// The rows of a query, by its id or as QVHighlights names its files.
    fn rows(&self, query: &QueryId) -> Result<Features> {
        let video = VideoId::from(format!("{}{query}", self.prefix).as_str());
        let features = self.source.get(&video, &self.stream)?;
        if features.rows() == 0 {
            return Err(TrainError::Query { query: query.to_string(), problem: "has no row of word features" });
        }
        Ok(features)
    }
}

fn frozen(text: &PublishedText, ids: &[Vec<u32>]) -> Result<Vec<Features>> {
    let Some(kept) = text.kept() else { unreachable!("only a frozen encoder's vectors are filled in") };
    ids.iter().map(|tokens| kept.rows(tokens)).collect()
}

/// The real tokens of every row.
fn tokens(ids: &Tensor, lengths: &[usize]) -> Result<Vec<Vec<u32>>> {
    let rows = ids.to_device(&Device::Cpu)?.to_vec2::<u32>()?;
    Ok(rows.into_iter().zip(lengths).map(|(row, length)| row.into_iter().take(*length).collect()).collect())
}

/// Rows of several queries, zero padded to the longest.
fn stacked(rows: &[Features]) -> Result<(Tensor, Vec<usize>)> {
    let longest = rows.iter().map(Features::rows).max().unwrap_or(0);
    let width = rows.first().map_or(0, Features::width);
    let mut data = Vec::with_capacity(rows.len() * longest * width);
    for (number, features) in rows.iter().enumerate() {
        if features.width() != width {
            return Err(TrainError::Query { query: String::new(), problem: "has word features of another width" });
        }
        data.extend_from_slice(features.data());
        data.resize((number + 1) * longest * width, 0.0);
    }
    let lengths = rows.iter().map(Features::rows).collect();
    Ok((Tensor::from_vec(data, (rows.len(), longest, width), &Device::Cpu)?, lengths))
}
