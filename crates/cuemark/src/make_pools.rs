//! Pools of many videos with several right answers.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_formats::Overwrite;
use cuemark_protocols::pools::calibration::{Shares, by_known_pools, by_share};
use cuemark_protocols::pools::{Collection, PoolCalibration, PoolReport, PoolSettings, Thresholds, make};
use serde::{Deserialize, Serialize};

use crate::similarity::with_videos;
use crate::{Queries, Result, SimilarityBy};

/// The most positives that published pools hold, the query's own video among them.
const PUBLISHED_POSITIVES: usize = 5;
/// Share of known positives that may count as negatives when thresholds are fitted to known pools.
const LOST: f64 = 0.01;

/// Builds a pool for every query: videos that show what it says, and videos that do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct MakePools {
    /// The queries.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub queries: Queries,
    /// Where to write them with their pools; the manifest goes beside it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE.jsonl"))]
    pub out: Utf8PathBuf,
    /// Videos in a pool.
    #[serde(default = "videos")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = videos()))]
    pub videos: usize,
    /// Positive videos in a pool at the most, the query's own among them.
    #[serde(default = "positives")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", default_value_t = positives()))]
    pub positives: usize,
    /// How sentences are compared.
    #[serde(default)]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub similarity: SimilarityBy,
    /// Filter by how well queries match videos, too: `concepts:STORE` or `clip:STORE`, a store that `features extract` made
    /// with that encoder, or a FILE with a matrix of queries by videos, these in the order they first come up.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROVIDER"))]
    pub video_similarity: Option<String>,
    /// Thresholds of this provider: positive,negative (SimCSE's are 0.9,0.5).
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P,N", conflicts_with_all = ["shares", "known"]))]
    pub thresholds: Option<PositiveNegative>,
    /// Calibrate: the shares of all pairs that are positive and negative. Default: 0.002,0.5
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P,N"))]
    pub shares: Option<PositiveNegative>,
    /// Calibrate: known pools of the same queries, to agree with best.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", conflicts_with = "shares"))]
    pub known: Option<Utf8PathBuf>,
    /// Seed of the draw.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// One number for positives and one for negatives; written `0.9,0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PositiveNegative {
    /// For positives.
    pub positive: f64,
    /// For negatives.
    pub negative: f64,
}

/// The pools that were written.
#[derive(Debug, Clone, Serialize)]
pub struct WrittenPools {
    /// What they look like, with the thresholds that were found.
    pub settings: PoolSettings,
    /// What came of it.
    pub report: PoolReport,
    /// The file.
    pub out: Utf8PathBuf,
}

fn videos() -> usize {
    50
}

fn positives() -> usize {
    PUBLISHED_POSITIVES
}

impl MakePools {
    /// Pools of fifty videos for the queries of a file.
    pub fn new(queries: Queries, out: impl Into<Utf8PathBuf>) -> Self {
        Self {
            queries,
            out: out.into(),
            videos: videos(),
            positives: positives(),
            similarity: SimilarityBy::default(),
            video_similarity: None,
            thresholds: None,
            shares: None,
            known: None,
            seed: 0,
            force: false,
        }
    }

    /// Compares, calibrates where no thresholds are given, draws and writes.
    ///
    /// # Errors
    /// When the file is there and may not be replaced, and those of readers, similarity and protocol.
    pub fn run(&self, progress: &Progress) -> Result<WrittenPools> {
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        overwrite.check(&self.out)?;
        let queries = self.queries.read()?;
        let between = self.similarity.between(&queries, &queries, progress)?;
        progress.phase("making pools", 0);
        let (thresholds, calibration) = match (self.thresholds, &self.known) {
            (Some(given), _) => (given.thresholds(), PoolCalibration::Given),
            (None, Some(path)) => {
                let known = Queries::new(path).read()?;
                by_known_pools(&queries, &known, &*between, PUBLISHED_POSITIVES, LOST)?
            }
            (None, None) => {
                let given = self.shares.map(|PositiveNegative { positive, negative }| Shares { positive, negative });
                by_share(&*between, given.unwrap_or_default())?
            }
        };
        let collection = Collection::new(&queries)?;
        let matching = |provider: &String| with_videos(provider, &queries, collection.videos());
        let matching = self.video_similarity.as_ref().map(matching).transpose()?;
        let (videos, positives, seed) = (self.videos, self.positives, self.seed);
        let settings = PoolSettings { videos, positives, thresholds, calibration, seed };
        let pools = make(&queries, &*between, matching.as_deref(), settings)?;
        pools.write(&self.out, overwrite)?;
        Ok(WrittenPools { settings: pools.settings, report: pools.report, out: self.out.clone() })
    }
}

impl PositiveNegative {
    /// As thresholds of a similarity.
    pub fn thresholds(self) -> Thresholds {
        Thresholds { positive: self.positive as f32, negative: self.negative as f32 }
    }
}

impl FromStr for PositiveNegative {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<f64> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        match numbers[..] {
            [positive, negative] => Ok(Self { positive, negative }),
            _ => Err("two numbers with a comma between them, such as 0.9,0.5".to_owned()),
        }
    }
}

impl fmt::Display for PositiveNegative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.positive, self.negative)
    }
}
