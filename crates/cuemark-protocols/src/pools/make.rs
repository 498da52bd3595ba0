//! Building the pools.

use camino::Utf8Path;
use cuemark_core::{GradedMoment, Rng, Truth};
use cuemark_formats::{Overwrite, write_truth};
use cuemark_text::similarity::{Result as Compared, Similarity};
use serde::Serialize;

use super::calibration::{PoolCalibration, Thresholds};
use super::collection::{Collection, Likeness, check_sides};
use crate::manifest::Manifest;
use crate::{ProtocolError, Result};

/// What pools should look like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PoolSettings {
    /// Videos in each pool, the query's own among them. Published: 50, for TACoS 5
    pub videos: usize,
    /// At most this many of them answer the query, its own among them. Published: 5
    pub positives: usize,
    /// What counts as saying nearly the same and as saying something else.
    pub thresholds: Thresholds,
    /// Where these thresholds come from.
    pub calibration: PoolCalibration,
    /// Seed of the draws; each query has its own stream, so removing a query moves no other.
    #[serde(skip)]
    pub seed: u64,
}

/// The second filter: the query compared with the video itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VideoFilter {
    /// Whose similarities.
    pub provider: String,
    /// Mean over queries with their own videos: positives must reach it.
    pub gold_mean: f64,
    /// Mean over pairs that the first filter calls negative: negatives must not exceed it.
    pub negative_mean: f64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolReport {
    /// Whose similarities between queries.
    pub provider: String,
    /// The second filter, when there was one.
    pub video_filter: Option<VideoFilter>,
    /// Queries that were given.
    pub queries: usize,
    /// Queries that got a pool.
    pub kept: usize,
    /// Queries that too few negative videos were found for.
    pub dropped: usize,
    /// Videos there are to draw from.
    pub videos: usize,
    /// How many pools have 1, 2, … positive videos.
    pub positives: Vec<usize>,
    /// Positive videos per pool; 0 without pools.
    pub mean_positives: f64,
}

/// Queries with their pools.
#[derive(Debug, Clone)]
pub struct Pools {
    /// The queries that got a pool, in order; `moments` lie in several videos.
    pub truths: Vec<Truth>,
    /// What the settings were.
    pub settings: PoolSettings,
    /// What came out.
    pub report: PoolReport,
}

impl Pools {
    /// Writes the pools as our truth JSONL, with a manifest beside them.
    ///
    /// # Errors
    /// When something stands there already and may not be replaced, or a file cannot be written.
    pub fn write(&self, out: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        Manifest::new("multi-video-pool", 1, self.settings, &self.report).with_seed(self.settings.seed).write_with(
            out,
            overwrite,
            |file| Ok(write_truth(&self.truths, file)?),
        )
    }
}

/// Builds a pool for each query.
///
/// `between_queries` compares the queries with themselves; `with_videos`, when there is one, compares them with
/// [`Collection::videos`]. A video is a positive candidate when its likest query reaches `thresholds.positive` and the
/// video filter agrees, a negative one when that query stays at or below `thresholds.negative` and the filter agrees.
/// Up to `positives - 1` positives are drawn, the rest of the pool are negatives; a query with too few of them is
/// dropped and counted. The moments are the query's own and, in each positive video, those of its likest query.
///
/// Videos stand in the pool in random order, so that a method which keeps the order of the pool gains nothing by it.
///
/// # Errors
/// When a query names no single video or has no moment, a setting cannot be met, or similarities are of other things.
pub fn make(
    queries: &[Truth],
    between_queries: &dyn Similarity,
    with_videos: Option<&dyn Similarity>,
    settings: PoolSettings,
) -> Result<Pools> {
    let collection = Collection::new(queries)?;
    check(&settings, collection.videos().len())?;
    if let Some(empty) = queries.iter().find(|truth| truth.moments.is_empty()) {
        return Err(ProtocolError::NoMoments { what: format!("query `{}`", empty.query.id) });
    }
    check_sides(between_queries, queries.len(), queries.len())?;
    let video_filter = match with_videos {
        Some(provider) => Some(VideoFilter::fit(&collection, between_queries, provider, settings.thresholds)?),
        None => None,
    };
    let drawn = collection.likenesses(between_queries, Vec::new, |drawn, query, likenesses| {
        let filter = video_filter.as_ref().zip(with_videos);
        let candidates = Candidates::find(&collection, query, likenesses, filter, settings.thresholds)?;
        drawn.extend(candidates.draw(&collection, query, likenesses, &settings));
        Ok(())
    })?;
    let truths: Vec<Truth> = drawn.into_iter().flatten().collect();
    let report = report(&collection, &truths, between_queries.name(), video_filter, settings.positives);
    Ok(Pools { truths, settings, report })
}

fn check(settings: &PoolSettings, videos: usize) -> Result<()> {
    let wrong = |option, value: usize, problem: &str| {
        Err(ProtocolError::Option { option, value: value.to_string(), problem: problem.to_owned() })
    };
    if settings.positives == 0 {
        return wrong("positives", 0, "leaves no place for the query's own video");
    }
    if settings.videos < settings.positives {
        return wrong("videos", settings.videos, "is fewer than the positives a pool may have");
    }
    if settings.videos > videos {
        return wrong("videos", settings.videos, &format!("is more than the {videos} there are"));
    }
    settings.thresholds.check()
}

#[derive(Default)]
struct Sums {
    gold: f64,
    negative: f64,
    negatives: usize,
}

impl VideoFilter {
    fn fit(
        collection: &Collection<'_>,
        between_queries: &dyn Similarity,
        provider: &dyn Similarity,
        thresholds: Thresholds,
    ) -> Result<Self> {
        check_sides(provider, collection.queries().len(), collection.videos().len())?;
        let sums = collection.likenesses(between_queries, Sums::default, |sums, query, likenesses| {
            let row = whole_row(provider, query)?;
            let own = collection.video_of(query);
            sums.gold += f64::from(row[own]);
            for (video, (like, value)) in likenesses.iter().zip(&row).enumerate() {
                if video != own && like.similarity <= thresholds.negative {
                    sums.negative += f64::from(*value);
                    sums.negatives += 1;
                }
            }
            Ok(())
        })?;
        let gold: f64 = sums.iter().map(|sums| sums.gold).sum();
        let negative: f64 = sums.iter().map(|sums| sums.negative).sum();
        let negatives: usize = sums.iter().map(|sums| sums.negatives).sum();
        Ok(Self {
            provider: provider.name().to_owned(),
            gold_mean: gold / collection.queries().len() as f64,
            negative_mean: negative / negatives.max(1) as f64,
        })
    }
}

fn whole_row(provider: &dyn Similarity, row: usize) -> Compared<Vec<f32>> {
    let mut values = vec![0.0; provider.right()];
    provider.tile(row..row + 1, 0..provider.right(), &mut values)?;
    Ok(values)
}

/// The videos that may stand in one query's pool beside its own.
struct Candidates {
    positive: Vec<usize>,
    negative: Vec<usize>,
}

impl Candidates {
    fn find(
        collection: &Collection<'_>,
        query: usize,
        likenesses: &[Likeness],
        filter: Option<(&VideoFilter, &dyn Similarity)>,
        thresholds: Thresholds,
    ) -> Compared<Self> {
        let row = filter.map(|(_, provider)| whole_row(provider, query)).transpose()?;
        let filter = filter.map(|(filter, _)| filter).zip(row.as_ref());
        // Without the second filter both of its questions are answered with yes. Means are compared in the precision
        // of the values, so that a provider that says one thing about all pairs does not lose them to rounding.
        let looks_right = |video: usize| filter.is_none_or(|(means, row)| row[video] >= means.gold_mean as f32);
        let looks_wrong = |video: usize| filter.is_none_or(|(means, row)| row[video] <= means.negative_mean as f32);
        let (mut positive, mut negative) = (Vec::new(), Vec::new());
        for (video, like) in likenesses.iter().enumerate() {
            if video == collection.video_of(query) {
                continue;
            }
            if like.similarity >= thresholds.positive && looks_right(video) {
                positive.push(video);
            } else if like.similarity <= thresholds.negative && looks_wrong(video) {
                negative.push(video);
            }
        }
        Ok(Self { positive, negative })
    }

    /// The query with its pool; `None` when there are too few negatives.
    fn draw(
        mut self,
        collection: &Collection<'_>,
        query: usize,
        likenesses: &[Likeness],
        settings: &PoolSettings,
    ) -> Option<Truth> {
        let own = &collection.queries()[query];
        let mut rng = Rng::stream(settings.seed, &format!("pool of {}", own.query.id));
        rng.shuffle(&mut self.positive);
        self.positive.truncate(settings.positives - 1);
        let wanted = settings.videos - 1 - self.positive.len();
        if self.negative.len() < wanted {
            return None;
        }
        rng.shuffle(&mut self.negative);
        self.negative.truncate(wanted);
        let borrowed = self.positive.iter().flat_map(|video| {
            let alike = &collection.queries()[likenesses[*video].query];
            alike.moments.iter().map(|graded| GradedMoment { relevance: None, ..graded.clone() })
        });
        let moments = own.moments.iter().cloned().chain(borrowed).collect();
        let mut pool: Vec<usize> = std::iter::once(collection.video_of(query)).collect();
        pool.extend(self.positive.iter().chain(&self.negative));
        rng.shuffle(&mut pool);
        let pool = pool.into_iter().map(|video| collection.videos()[video].clone()).collect();
        Some(Truth { moments, pool: Some(pool), ..own.clone() })
    }
}

fn report(
    collection: &Collection<'_>,
    truths: &[Truth],
    provider: &str,
    video_filter: Option<VideoFilter>,
    most: usize,
) -> PoolReport {
    let mut positives = vec![0; most];
    for truth in truths {
        let mut videos: Vec<_> = truth.right().map(|moment| &moment.video).collect();
        videos.sort_unstable();
        videos.dedup();
        positives[videos.len().clamp(1, most) - 1] += 1;
    }
    let all: usize = positives.iter().enumerate().map(|(place, count)| (place + 1) * count).sum();
    PoolReport {
        provider: provider.to_owned(),
        video_filter,
        queries: collection.queries().len(),
        kept: truths.len(),
        dropped: collection.queries().len() - truths.len(),
        videos: collection.videos().len(),
        positives,
        mean_positives: all as f64 / truths.len().max(1) as f64,
    }
}

#[cfg(test)]
#[path = "make_tests.rs"]
mod tests;
