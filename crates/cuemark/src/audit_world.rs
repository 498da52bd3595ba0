//! Whether a world is what it promises, and what our protocols make of it.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Extra, Prediction, Predictions, Progress, QueryPredictions, Truth, Video};
use cuemark_protocols::pools::calibration::{Shares, by_share};
use cuemark_protocols::pools::{self, PoolSettings};
use cuemark_protocols::ranked::candidates::{self, Candidate, CandidateSettings};
use cuemark_protocols::splits::{self, SplitProtocol, SplitRecipe, audit};
use cuemark_text::similarity::Tfidf;
use cuemark_world::{CandidateGrades, PoolQuality, WorldLog, grade_candidates, pool_quality};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::{Queries, Result};

/// Checks a world against what it promises, and the protocols against a world whose truth is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AuditWorld {
    /// The world's folder.
    pub dir: Utf8PathBuf,
}

/// What was found.
#[derive(Debug)]
pub struct AuditedWorld {
    /// The world by its own log.
    pub world: cuemark_world::AuditReport,
    /// What guesses reach on the world's own splits.
    pub baselines: audit::AuditReport,
    /// What they reach on splits that `cd` makes of it.
    pub cd: audit::AuditReport,
    /// Pools that words alone build, against known positives.
    pub pools: PoolQuality,
    /// Candidates that words alone find for imprecise queries, against known grades.
    pub candidates: CandidateGrades,
}

impl AuditWorld {
    /// The world in a folder.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Reads the world, and makes splits, pools and candidates of it in memory.
    ///
    /// # Errors
    /// When there is no finished world, or it was stopped.
    pub fn run(&self, progress: &Progress) -> Result<AuditedWorld> {
        let dir = self.dir.as_path();
        let world = cuemark_world::audit(dir)?;
        let seed = world.manifest.options.seed;
        let log = WorldLog::open(dir)?;
        let own = splits::read_folder(&dir.join("splits"), progress)?;
        let everything: Vec<Truth> = own.iter().flat_map(|split| split.queries.iter().cloned()).collect();
        let recipe = SplitRecipe { seed, ..SplitRecipe::new(SplitProtocol::Cd) };
        let made = recipe.part_queries(&everything, progress)?;
        Ok(AuditedWorld {
            world,
            baselines: audit::audit(&own, seed, progress)?,
            cd: audit::audit(&made.splits, seed, progress)?,
            pools: pools_by_words(dir, &log, seed)?,
            candidates: candidates_by_words(dir, &log, &everything)?,
        })
    }
}

impl AuditedWorld {
    /// Whether the world is what it promises.
    pub fn is_sound(&self) -> bool {
        self.world.faults.is_empty()
    }
}

impl Serialize for AuditedWorld {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("AuditedWorld", 3)?;
        object.serialize_field("world", &self.world)?;
        object.serialize_field("gaps", &json!({ "baselines": self.baselines.gaps, "cd": self.cd.gaps }))?;
        object.serialize_field("constructed", &json!({ "pools": self.pools, "candidates": self.candidates }))?;
        object.end()
    }
}

/// The queries of the world's pools, each with its own video only, pooled anew by their words.
fn pools_by_words(dir: &Utf8Path, log: &WorldLog, seed: u64) -> Result<PoolQuality> {
    let known = Queries::new(dir.join("pools.jsonl")).read()?;
    let own_alone = |truth: &Truth| {
        let first = truth.moments.first().map(|graded| graded.moment.clone())?;
        let video = Video { id: first.video, duration: None };
        Some(Truth::single(truth.query.clone(), video, [first.span]))
    };
    let queries: Vec<Truth> = known.iter().filter_map(own_alone).collect();
    let texts: Vec<&str> = queries.iter().map(|truth| truth.query.text.as_str()).collect();
    let words = Tfidf::new(&texts, &texts);
    // The world's vocabulary is small, so that most sentences share words; nine in ten pairs still mean different things.
    let (thresholds, calibration) = by_share(&words, Shares { negative: 0.9, ..Shares::default() })?;
    let videos = pools::Collection::new(&queries)?.videos().len().min(20);
    let settings = PoolSettings { videos, positives: 5.min(videos), thresholds, calibration, seed };
    Ok(pool_quality(log, &pools::make(&queries, &words, None, settings)?.truths)?)
}

/// The forty likest moments of every imprecise query, by the words of the precise ones.
fn candidates_by_words(dir: &Utf8Path, log: &WorldLog, captions: &[Truth]) -> Result<CandidateGrades> {
    let queries = Queries::new(dir.join("graded.jsonl")).read()?;
    let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<String>>();
    let words = Tfidf::new(&texts(&queries), &texts(captions));
    let settings = CandidateSettings { most: 40.min(captions.len()), ..CandidateSettings::default() };
    let found = candidates::candidates(&queries, captions, &words, &settings)?;
    let lists = found.chunk_by(|a, b| a.qid == b.qid).map(|list| QueryPredictions {
        query: list[0].qid.clone(),
        ranked: list.iter().map(as_prediction).collect(),
        saliency: None,
        extra: Extra::default(),
    });
    Ok(grade_candidates(log, &Predictions::any(lists.collect()))?)
}

fn as_prediction(candidate: &Candidate) -> Prediction {
    let score = Some(f64::from(candidate.similarity));
    Prediction { video: Some(candidate.video.clone()), span: candidate.span, score }
}
