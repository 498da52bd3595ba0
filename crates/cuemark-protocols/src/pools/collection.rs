//! Queries and the videos they were written for.

use std::collections::HashMap;
use std::ops::Range;

use cuemark_core::{Truth, VideoId};
use cuemark_text::similarity::{Result as Compared, Similarity, sweep};

use crate::{ProtocolError, Result};

/// Queries, each with the one video it was written for.
pub struct Collection<'a> {
    queries: &'a [Truth],
    videos: Vec<VideoId>,
    /// For each query, the place of its video.
    video_of: Vec<usize>,
}

/// How like a query a video is: the best of the video's own queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Likeness {
    /// Its similarity, `-inf` for a video without queries.
    pub(super) similarity: f32,
    /// The place of that query; of equals, the first.
    pub(super) query: usize,
}

impl<'a> Collection<'a> {
    /// Takes the queries in order; videos are numbered as they are met.
    ///
    /// # Errors
    /// When a query names no single video, or there is none at all.
    pub fn new(queries: &'a [Truth]) -> Result<Self> {
        if queries.is_empty() {
            return Err(ProtocolError::NoMoments { what: "the queries to make pools of".to_owned() });
        }
        let mut places: HashMap<&VideoId, usize> = HashMap::new();
        let mut videos = Vec::new();
        let mut video_of = Vec::with_capacity(queries.len());
        for truth in queries {
            let Some(video) = &truth.video else {
                return Err(ProtocolError::NoVideo { query: truth.query.id.clone() });
            };
            let place = *places.entry(&video.id).or_insert_with(|| {
                videos.push(video.id.clone());
                videos.len() - 1
            });
            video_of.push(place);
        }
        Ok(Self { queries, videos, video_of })
    }

    /// The queries, in order.
    pub fn queries(&self) -> &'a [Truth] {
        self.queries
    }

    /// The videos, in the order in which queries bring them: the columns of a query-video provider.
    pub fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    /// The place of the video that query number `query` was written for.
    pub fn video_of(&self, query: usize) -> usize {
        self.video_of[query]
    }

    /// Compares every query with every video through the videos' own queries. `add` is handed each query with one
    /// [`Likeness`] per video and what has been kept of its block of queries so far; the blocks come back in order.
    pub(super) fn likenesses<Kept: Send>(
        &self,
        between_queries: &dyn Similarity,
        start: impl Fn() -> Kept + Sync,
        add: impl Fn(&mut Kept, usize, &[Likeness]) -> Compared<()> + Sync,
    ) -> Result<Vec<Kept>> {
        let nothing = Likeness { similarity: f32::NEG_INFINITY, query: 0 };
        let videos = self.videos.len();
        Ok(sweep(
            between_queries,
            |rows: Range<usize>| vec![nothing; rows.len() * videos],
            |best, tile| {
                for ((_, values), best) in tile.rows().zip(best.chunks_exact_mut(videos)) {
                    for (query, similarity) in (tile.first_column()..).zip(values) {
                        let best = &mut best[self.video_of[query]];
                        if *similarity > best.similarity {
                            *best = Likeness { similarity: *similarity, query };
                        }
                    }
                }
            },
            |rows, best| {
                let mut kept = start();
                for (query, best) in rows.zip(best.chunks_exact(videos)) {
                    add(&mut kept, query, best)?;
                }
                Ok(kept)
            },
        )?)
    }
}

/// Whether `provider` compares `left` with `right` things.
pub(crate) fn check_sides(provider: &dyn Similarity, left: usize, right: usize) -> Result<()> {
    let (rows, columns) = (provider.left(), provider.right());
    if (rows, columns) == (left, right) {
        return Ok(());
    }
    Err(ProtocolError::Sides { provider: provider.name().to_owned(), rows, columns, left, right })
}
