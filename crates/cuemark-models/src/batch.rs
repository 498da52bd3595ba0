//! What a model is given: a few videos and the queries asked of them, padded to one size.

use std::ops::Range;

use cuemark_core::{NormSpan, QueryId, VideoId};
use cuemark_tensor::{Device, Tensor};
use cuemark_text::Parse;

use crate::{JointTargets, ModelError, Result};

/// A few videos, the queries asked of them, and, under full supervision only, where the answers lie.
///
/// Pair models get as many videos as queries, query `i` asking of video `i`; models that learn from whole videos get
/// each video once with all its queries ([`QueryBatch::video`] says whose each is).
#[derive(Debug, Clone)]
pub struct Batch {
    /// The videos.
    pub videos: VideoBatch,
    /// The queries.
    pub queries: QueryBatch,
    /// Where the answers lie. `None` when predicting and for weakly supervised models, which never see a span.
    pub targets: Option<Targets>,
    /// For each query another video drawn at random, for models that learn from mismatched pairs.
    pub other_videos: Option<VideoBatch>,
    /// How alike each query and each video's own queries are, `[queries, videos]`, 0 at the query's own video.
    pub similarity: Option<Tensor>,
    /// Sampled negatives, for training stages that ask for them.
    pub negatives: Option<Vec<Negatives>>,
}

/// Clip features of a few videos, zero padded to the longest.
#[derive(Debug, Clone)]
pub struct VideoBatch {
    /// Who they are.
    pub ids: Vec<VideoId>,
    /// `[videos, clips, width]`, zero where a video has no more clips.
    pub visual: Tensor,
    /// `[videos, clips, width]` subtitle features; zero rows where nothing is said.
    pub subtitle: Option<Tensor>,
    /// `[videos, clips, width]` audio features.
    pub audio: Option<Tensor>,
    /// Number of real clips of each.
    pub lengths: Vec<usize>,
    /// `[videos, clips]`, 1 where a clip is real.
    pub mask: Tensor,
    /// **Seconds** that the clips of each cover.
    pub durations: Vec<f64>,
}

/// A few queries, padded to the longest.
#[derive(Debug, Clone)]
pub struct QueryBatch {
    /// Who they are.
    pub ids: Vec<QueryId>,
    /// The position in [`Batch::videos`] of the video each asks of.
    pub video: Vec<usize>,
    /// `[queries, words]` numbers in the vocabulary, 0 where there is no more word. For models that read tokens the first
    /// and last real ones are the markers of a sentence's start and end.
    pub word_ids: Tensor,
    /// `[queries, words, width]` word vectors, zero where there is no more word.
    pub words: Tensor,
    /// Number of real words of each.
    pub lengths: Vec<usize>,
    /// `[queries, words]`, 1 where a word is real.
    pub mask: Tensor,
    /// How the words hang together, positions counted in the words above; for models that ask for it.
    pub parses: Option<Vec<Parse>>,
    /// `[phrases, words]` numbers of the phrases of all queries, one query after another; for models that ask for it.
    pub phrases: Option<Phrases>,
}

/// The phrases of all queries of a batch, one query after another.
#[derive(Debug, Clone)]
pub struct Phrases {
    /// `[phrases, words]` numbers in the vocabulary, 0 padded.
    pub word_ids: Tensor,
    /// `[phrases, words, width]` vectors of an encoder that stays as it is; `None` where the model makes its own.
    pub words: Option<Tensor>,
    /// Number of real words of each.
    pub lengths: Vec<usize>,
    /// Number of phrases of each query.
    pub per_query: Vec<usize>,
}

impl Phrases {
    /// The phrases of the queries at `rows`, in that order.
    fn select(&self, rows: &[usize]) -> Result<Self> {
        let first = |row: usize| self.per_query[..row].iter().sum::<usize>();
        let places: Vec<usize> = rows.iter().flat_map(|row| (first(*row)..).take(self.per_query[*row])).collect();
        let index = Tensor::new(places.iter().map(|place| *place as u32).collect::<Vec<_>>(), self.word_ids.device())?;
        Ok(Self {
            word_ids: self.word_ids.contiguous()?.index_select(&index, 0)?,
            words: self.words.as_ref().map(|words| words.contiguous()?.index_select(&index, 0)).transpose()?,
            lengths: places.iter().map(|place| self.lengths[*place]).collect(),
            per_query: rows.iter().map(|row| self.per_query[*row]).collect(),
        })
    }
}

/// Where the answers lie.
#[derive(Debug, Clone)]
pub struct Targets {
    /// The span each query describes, as fractions of what the clips cover.
    pub spans: Vec<NormSpan>,
    /// How relevant that moment is to its query, in 0..1; `None` where truth is not graded (all 1).
    pub relevance: Option<Vec<f32>>,
    /// Every window and how good the clips are, for models of moments and highlights; `None` where only spans are known.
    pub joint: Option<JointTargets>,
    /// Positions in [`Batch::videos`] of all videos that hold an answer to each query; `None` when only its own counts.
    pub positives: Option<Vec<Vec<usize>>>,
}

/// What was sampled against one query of a batch: positions in [`Batch::videos`] and [`Batch::queries`].
#[derive(Debug, Clone)]
pub struct Negatives {
    /// The query.
    pub query: usize,
    /// Videos in which nothing answers it.
    pub videos: Vec<usize>,
    /// Queries that nothing in its video answers.
    pub queries: Vec<usize>,
}

impl Batch {
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.queries.ids.len()
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the pairs of a batch of pairs, without what tells right from wrong.
    ///
    /// # Errors
    /// When there are no such pairs.
    pub fn pairs(&self, pairs: Range<usize>) -> Result<Self> {
        let rows: Vec<usize> = pairs.clone().collect();
        let mut queries = self.queries.select(&rows)?;
        queries.video = (0..rows.len()).collect();
        Ok(Self {
            videos: self.videos.stretch(&pairs)?,
            queries,
            targets: None,
            other_videos: self.other_videos.as_ref().map(|videos| videos.stretch(&pairs)).transpose()?,
            similarity: None,
            negatives: None,
        })
    }

    /// Where the answers lie.
    ///
    /// # Errors
    /// When the batch was made without.
    pub fn targets(&self, model: &'static str) -> Result<&Targets> {
        self.targets.as_ref().ok_or(ModelError::Missing { model, what: "the spans of its training queries" })
    }
}

impl Targets {
    /// The mean of one value per query, `[queries]`, each weighted by the relevance of the query's moment where it is graded.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn weighted_mean(&self, values: &Tensor) -> Result<Tensor> {
        let weighted = match &self.relevance {
            Some(relevance) => values.mul(&Tensor::new(relevance.as_slice(), values.device())?)?,
            None => values.clone(),
        };
        Ok(weighted.mean_all()?)
    }

    /// For every query of pairs the videos that answer it, its own first.
    pub fn answering_videos(&self) -> Vec<Vec<usize>> {
        let others =
            |query: usize| self.positives.as_ref().and_then(|all| all.get(query)).into_iter().flatten().copied();
        let own_first = |query: usize| std::iter::once(query).chain(others(query).filter(move |video| *video != query));
        (0..self.spans.len()).map(|query| own_first(query).collect()).collect()
    }

    /// For every video of pairs the queries that it answers, its own first.
    pub fn answered_queries(&self) -> Vec<Vec<usize>> {
        let mut queries: Vec<Vec<usize>> = (0..self.spans.len()).map(|query| vec![query]).collect();
        for (query, videos) in self.answering_videos().iter().enumerate() {
            for video in &videos[1..] {
                if let Some(queries) = queries.get_mut(*video) {
                    queries.push(query);
                }
            }
        }
        queries
    }
}

impl QueryBatch {
    /// The queries at `rows`, in that order, padded as before.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        let index = Tensor::new(rows.iter().map(|row| *row as u32).collect::<Vec<_>>(), self.words.device())?;
        let pick = |tensor: &Tensor| tensor.contiguous()?.index_select(&index, 0);
        Ok(Self {
            word_ids: pick(&self.word_ids)?,
            words: pick(&self.words)?,
            mask: pick(&self.mask)?,
            ids: rows.iter().map(|row| self.ids[*row].clone()).collect(),
            video: rows.iter().map(|row| self.video[*row]).collect(),
            lengths: rows.iter().map(|row| self.lengths[*row]).collect(),
            parses: self.parses.as_ref().map(|parses| rows.iter().map(|row| parses[*row].clone()).collect()),
            phrases: self.phrases.as_ref().map(|phrases| phrases.select(rows)).transpose()?,
        })
    }

    /// The parses.
    ///
    /// # Errors
    /// When the batch was made without.
    pub fn parses(&self, model: &'static str) -> Result<&[Parse]> {
        self.parses.as_deref().ok_or(ModelError::Missing { model, what: "the parses of its queries" })
    }

    /// Number of queries asked of each of `videos` videos, when queries of one video stand together.
    pub fn per_video(&self, videos: usize) -> Vec<usize> {
        let mut counts = vec![0; videos];
        for video in &self.video {
            counts[*video] += 1;
        }
        counts
    }
}

impl Batch {
    /// The same batch on `device`.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        Ok(Self {
            videos: self.videos.to_device(device)?,
            queries: self.queries.to_device(device)?,
            targets: self.targets.clone(),
            other_videos: self.other_videos.as_ref().map(|videos| videos.to_device(device)).transpose()?,
            similarity: self.similarity.as_ref().map(|similarity| similarity.to_device(device)).transpose()?,
            negatives: self.negatives.clone(),
        })
    }
}

impl VideoBatch {
    /// So many videos that stand together, padded as before.
    fn stretch(&self, rows: &Range<usize>) -> Result<Self> {
        let cut = |tensor: &Tensor| tensor.narrow(0, rows.start, rows.len());
        Ok(Self {
            ids: self.ids[rows.clone()].to_vec(),
            visual: cut(&self.visual)?,
            subtitle: self.subtitle.as_ref().map(cut).transpose()?,
            audio: self.audio.as_ref().map(cut).transpose()?,
            lengths: self.lengths[rows.clone()].to_vec(),
            mask: cut(&self.mask)?,
            durations: self.durations[rows.clone()].to_vec(),
        })
    }

    /// The same videos on `device`.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        Ok(Self {
            visual: self.visual.to_device(device)?,
            subtitle: self.subtitle.as_ref().map(|subtitle| subtitle.to_device(device)).transpose()?,
            audio: self.audio.as_ref().map(|audio| audio.to_device(device)).transpose()?,
            mask: self.mask.to_device(device)?,
            ..self.clone()
        })
    }
}

impl QueryBatch {
    /// The same queries on `device`.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        let phrases = match &self.phrases {
            Some(phrases) => Some(Phrases {
                word_ids: phrases.word_ids.to_device(device)?,
                words: phrases.words.as_ref().map(|words| words.to_device(device)).transpose()?,
                ..phrases.clone()
            }),
            None => None,
        };
        Ok(Self {
            word_ids: self.word_ids.to_device(device)?,
            words: self.words.to_device(device)?,
            mask: self.mask.to_device(device)?,
            phrases,
            ..self.clone()
        })
    }
}
