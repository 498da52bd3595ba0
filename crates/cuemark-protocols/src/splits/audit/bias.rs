//! What the baselines reach on each split, and what they lose from one test split to the other.

use cuemark_core::stats::{Interval, bootstrap};
use cuemark_core::{Progress, Rng, Split, Truth, VideoId};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;

use crate::Result;
use crate::baselines::{
    Answering, BASELINES, Baseline, BaselineCard, QueryCredits, Training, VerbOf, credits_of_first,
};

/// Overlaps that make a hit.
const THRESHOLDS: [f64; 2] = [0.5, 0.7];
/// Seeds of baselines that draw their answers.
const SEEDS: u64 = 10;
/// Resamples of the videos behind an interval.
const RESAMPLES: usize = 2000;

/// What one baseline reaches on one split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BaselineScores {
    /// The baseline.
    pub baseline: &'static str,
    /// The split.
    pub split: String,
    /// Seeds that were averaged: 1 where the answer does not depend on one.
    pub seeds: u64,
    /// One entry per threshold.
    pub scores: Vec<MeanScore>,
}

/// Recall of first answers at one threshold, averaged over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanScore {
    /// The overlap that makes a hit, inclusive.
    pub threshold: f64,
    /// R@1.
    pub recall: f64,
    /// Its standard deviation over seeds.
    pub recall_sd: f64,
    /// dR@1.
    pub discounted: f64,
    /// Its standard deviation over seeds.
    pub discounted_sd: f64,
}

/// What one baseline loses (or gains) from test-iid to test-ood, in dR@1 at IoU 0.5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BiasGap {
    /// The baseline.
    pub baseline: &'static str,
    /// Its score on test-iid.
    pub iid: f64,
    /// Its score on test-ood.
    pub ood: f64,
    /// `iid - ood`: positive when the baseline lives on the bias.
    pub gap: f64,
    /// The gap's 95 % interval, from resampling the videos of both splits.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Scores every baseline, fitted to `train`, on every split that has queries.
pub(super) fn score_baselines(
    splits: &[Split],
    train: &[Truth],
    first_verb: VerbOf<'_>,
    seed: u64,
    progress: &Progress,
) -> Result<(Vec<BaselineScores>, Vec<BiasGap>)> {
    let splits: Vec<&Split> = splits.iter().filter(|split| !split.queries.is_empty()).collect();
    let (mut scores, mut gaps) = (Vec::new(), Vec::new());
    for card in BASELINES {
        let baseline = card.fit(&Training { truths: train, first_verb })?;
        progress.announce(splits.len());
        let runs = splits.iter().map(|split| {
            progress.advance(1)?;
            Run::of(baseline.as_ref(), &split.queries, seed, seeds_of(card))
        });
        let runs = runs.collect::<Result<Vec<Run>>>()?;
        for (split, run) in splits.iter().zip(&runs) {
            let (baseline, split) = (card.name, split.name.clone());
            scores.push(BaselineScores { baseline, split, seeds: seeds_of(card), scores: run.scores.clone() });
        }
        let find = |name: &str| splits.iter().position(|split| split.name == name);
        if let (Some(iid), Some(ood)) = (find("test-iid"), find("test-ood")) {
            gaps.push(BiasGap::of(card.name, &runs[iid].by_video, &runs[ood].by_video, seed));
        }
    }
    Ok((scores, gaps))
}

fn seeds_of(card: &BaselineCard) -> u64 {
    match card.answers {
        Answering::Fixed => 1,
        Answering::Drawn => SEEDS,
    }
}

/// One baseline on one split, over all its seeds.
struct Run {
    scores: Vec<MeanScore>,
    /// For each video its queries and their summed dR@1 at the first threshold, averaged over seeds.
    by_video: Vec<VideoCredit>,
}

#[derive(Clone, Copy, Default)]
struct VideoCredit {
    queries: f64,
    credit: f64,
}

impl Run {
    fn of(baseline: &dyn Baseline, queries: &[Truth], seed: u64, seeds: u64) -> Result<Self> {
        let answered = (0..seeds).into_par_iter().map(|n| {
            let predictions = baseline.predict(queries, 1, seed.wrapping_add(n))?;
            credits_of_first(&predictions, queries, &THRESHOLDS)
        });
        let answered = answered.collect::<Result<Vec<_>>>()?;
        let scores = THRESHOLDS.iter().enumerate().map(|(slot, threshold)| {
            let mean_over_queries = |value: &dyn Fn(f64) -> f64| -> Vec<f64> {
                let of_seed = |queries: &Vec<QueryCredits<'_>>| {
                    let hits = queries.iter().filter_map(|query| query.credits[slot]);
                    hits.fold(0.0, |sum, credit| sum + value(credit)) / queries.len().max(1) as f64
                };
                answered.iter().map(of_seed).collect()
            };
            let (recall, recall_sd) = mean_and_sd(&mean_over_queries(&|_| 1.0));
            let (discounted, discounted_sd) = mean_and_sd(&mean_over_queries(&|credit| credit));
            MeanScore { threshold: *threshold, recall, recall_sd, discounted, discounted_sd }
        });
        let scores = scores.collect();
        let mut by_video: IndexMap<&VideoId, VideoCredit> = IndexMap::new();
        for query in answered.iter().flatten() {
            let video = by_video.entry(query.video).or_default();
            video.queries += 1.0 / seeds as f64;
            video.credit += query.credits[0].unwrap_or(0.0) / seeds as f64;
        }
        Ok(Self { scores, by_video: by_video.into_values().collect() })
    }
}

impl BiasGap {
    fn of(baseline: &'static str, iid: &[VideoCredit], ood: &[VideoCredit], seed: u64) -> Self {
        let mut rng = Rng::stream(seed, baseline);
        let (iid_score, ood_score) = (share(iid.iter().copied()), share(ood.iter().copied()));
        let gap = iid_score - ood_score;
        let Interval { low, high } = bootstrap(gap, RESAMPLES, || {
            let mut score = |videos: &[VideoCredit]| share(videos.iter().map(|_| videos[rng.below(videos.len())]));
            score(iid) - score(ood)
        });
        Self { baseline, iid: iid_score, ood: ood_score, gap, low, high }
    }
}

/// Credit per query.
fn share(videos: impl Iterator<Item = VideoCredit>) -> f64 {
    let (queries, credit) = videos.fold((0.0, 0.0), |(q, c), video| (q + video.queries, c + video.credit));
    if queries > 0.0 { credit / queries } else { 0.0 }
}

/// Mean and standard deviation (over `n - 1`); one number has deviation 0.
fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
