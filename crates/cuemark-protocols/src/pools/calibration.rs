//! Thresholds that belong to a provider.
//!
//! The published 0.9 and 0.5 were chosen for one sentence encoder, SimCSE. Another provider spreads its similarities
//! differently, so its thresholds are found so that they do the same work: take an equal share of the pairs
//! ([`by_share`]), or agree best with pairs whose answer is known ([`by_known_pools`]).

use std::collections::HashSet;

use cuemark_core::{Truth, VideoId};
use cuemark_text::similarity::{Histogram, Pairs, Scale, Similarity, histogram};
use serde::Serialize;

use super::collection::{Collection, check_sides};
use crate::{ProtocolError, Result};

/// Bins of the histogram that shares are read from: thresholds are exact to 0.0005.
const BINS: usize = 4000;

/// When two queries say the same and when they do not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Thresholds {
    /// At or above this they say nearly the same.
    pub positive: f32,
    /// At or below this they say something else.
    pub negative: f32,
}

impl Thresholds {
    /// Those of the paper; they belong to SimCSE embeddings and to nothing else.
    pub const SIMCSE: Self = Self { positive: 0.9, negative: 0.5 };

    /// # Errors
    /// When one is not finite or they do not leave anything in between.
    pub(super) fn check(self) -> Result<()> {
        if self.negative < self.positive && self.positive.is_finite() && self.negative.is_finite() {
            return Ok(());
        }
        let value = format!("{} and {}", self.positive, self.negative);
        let problem = "must be finite, the positive one above the negative one".to_owned();
        Err(ProtocolError::Option { option: "thresholds", value, problem })
    }
}

/// Where thresholds come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolCalibration {
    /// They were given.
    Given,
    /// They take these shares of the pairs.
    EqualShare(Shares),
    /// They agree best with known pools.
    KnownPools(Agreement),
}

/// Shares of all pairs of two different queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// At or above the positive threshold.
    pub positive: f64,
    /// At or below the negative threshold.
    pub negative: f64,
}

impl Default for Shares {
    /// What is taken when nothing else is known; ours.
    fn default() -> Self {
        Self { positive: 0.002, negative: 0.5 }
    }
}

/// How well thresholds separate known positives from everything else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Queries all of whose positive videos are known.
    pub complete_queries: usize,
    /// Query-video pairs known to be positive.
    pub known_positives: u64,
    /// Of the pairs of complete queries at or above the positive threshold, the share that is known to be positive.
    pub precision: f64,
    /// Of the known positives of complete queries, the share at or above the positive threshold.
    pub recall: f64,
    /// Of all known positives, the share at or below the negative threshold: what would become a false negative.
    pub positives_lost: f64,
}

/// The shares that `thresholds` take of a provider's pairs, for [`by_share`] of another.
///
/// # Errors
/// When the provider cannot be read.
pub fn shares(provider: &dyn Similarity, thresholds: Thresholds) -> Result<Shares> {
    let counted = histogram(provider, Pairs::Others, Scale::cosine(BINS))?;
    let above_negative = counted.share_at_least(thresholds.negative);
    Ok(Shares { positive: counted.share_at_least(thresholds.positive), negative: 1.0 - above_negative })
}

/// The thresholds that take these shares of the provider's pairs, as near as 0.0005 in similarity allows.
///
/// # Errors
/// When a share is outside 0..1, both together take everything, or the provider cannot be read.
pub fn by_share(provider: &dyn Similarity, shares: Shares) -> Result<(Thresholds, PoolCalibration)> {
    let inside = |share: f64| (0.0..=1.0).contains(&share);
    if !inside(shares.positive) || !inside(shares.negative) || shares.positive + shares.negative >= 1.0 {
        let value = format!("{} and {}", shares.positive, shares.negative);
        let problem = "must be shares that leave something in between".to_owned();
        return Err(ProtocolError::Option { option: "shares", value, problem });
    }
    // Counted, not sorted: a split has as many pairs as the square of its queries, more than memory holds.
    let counted = histogram(provider, Pairs::Others, Scale::cosine(BINS))?;
    let thresholds = Thresholds {
        positive: counted.threshold_for_top(shares.positive),
        negative: counted.threshold_for_bottom(shares.negative),
    };
    thresholds.check()?;
    Ok((thresholds, PoolCalibration::EqualShare(shares)))
}

/// The thresholds that agree best with known pools: `known` are the same queries as `queries`, in the same order, each
/// with moments in the videos that answer it.
///
/// Published pools hold at most `cap` positive videos, the own one among them, so a query with fewer is one all of whose
/// positives are known: every other video is not positive, in the pool or not. The positive threshold has the best F1
/// over all videos of such queries; of equals, the highest. The negative one is the highest that at most `lost` of all
/// known positives do not exceed, and stays below the positive one. Both are exact to 0.0005.
///
/// # Errors
/// When the lists differ, no complete query has a positive beside its own video, or similarities are of other things.
pub fn by_known_pools(
    queries: &[Truth],
    known: &[Truth],
    between_queries: &dyn Similarity,
    cap: usize,
    lost: f64,
) -> Result<(Thresholds, PoolCalibration)> {
    let collection = Collection::new(queries)?;
    check_sides(between_queries, queries.len(), queries.len())?;
    if known.len() != queries.len() {
        return Err(ProtocolError::NoMoments {
            what: format!("{} of the known pools", queries.len().abs_diff(known.len())),
        });
    }
    if let Some((truth, _)) = queries.iter().zip(known).find(|(truth, known)| truth.query.id != known.query.id) {
        return Err(ProtocolError::NoMoments { what: format!("query `{}` in the known pools", truth.query.id) });
    }
    let blocks = collection.likenesses(between_queries, Spread::empty, |spread, query, likenesses| {
        let answers: HashSet<&VideoId> = known[query].right().map(|moment| &moment.video).collect();
        // A shorter list was not cut, so whoever is not on it is wrong; only of such queries is a wrong answer known to be wrong.
        let complete = answers.len() < cap;
        spread.complete_queries += usize::from(complete);
        for (video, like) in likenesses.iter().enumerate().filter(|(video, _)| *video != collection.video_of(query)) {
            match (answers.contains(&collection.videos()[video]), complete) {
                (true, true) => spread.positives.count(like.similarity),
                (true, false) => spread.capped.count(like.similarity),
                (false, true) => spread.others.count(like.similarity),
                // Its list was cut at the cap: this video may have been right and left out.
                (false, false) => {}
            }
        }
        Ok(())
    })?;
    blocks.iter().fold(Spread::empty(), Spread::add).best_agreement(lost)
}

/// Similarities of queries with videos whose answer is known.
struct Spread {
    complete_queries: usize,
    /// Positive videos of complete queries.
    positives: Histogram,
    /// All other videos of complete queries.
    others: Histogram,
    /// The known positive videos of the queries that may have more.
    capped: Histogram,
}

impl Spread {
    fn empty() -> Self {
        let [positives, others, capped] = [(); 3].map(|()| Histogram::empty(Scale::cosine(BINS)));
        Self { complete_queries: 0, positives, others, capped }
    }

    fn add(self, more: &Self) -> Self {
        Self {
            complete_queries: self.complete_queries + more.complete_queries,
            positives: self.positives.joined(&more.positives),
            others: self.others.joined(&more.others),
            capped: self.capped.joined(&more.capped),
        }
    }

    fn best_agreement(self, lost: f64) -> Result<(Thresholds, PoolCalibration)> {
        let positives = self.positives.total();
        if positives == 0 || self.others.total() == 0 {
            return Err(ProtocolError::NoMoments {
                what: "the known pools, beside the queries' own videos".to_owned(),
            });
        }
        let scale = self.positives.scale;
        let (mut best, mut best_bin, mut found, mut wrong) = ((0.0, 0.0, 0.0), 0, 0, 0);
        for bin in (0..BINS).rev() {
            found += self.positives.counts[bin];
            wrong += self.others.counts[bin];
            let f1 = 2.0 * found as f64 / (found + wrong + positives) as f64;
            if f1 > best.0 {
                best = (f1, found as f64 / (found + wrong) as f64, found as f64 / positives as f64);
                best_bin = bin;
            }
        }
        let all = self.positives.joined(&self.capped);
        let positive = scale.edge(best_bin);
        let negative = all.threshold_for_bottom(lost).min(scale.edge(best_bin.saturating_sub(1)));
        let thresholds = Thresholds { positive, negative };
        thresholds.check()?;
        let calibration = PoolCalibration::KnownPools(Agreement {
            complete_queries: self.complete_queries,
            known_positives: all.total(),
            precision: best.1,
            recall: best.2,
            positives_lost: 1.0 - all.share_at_least(negative),
        });
        Ok((thresholds, calibration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_text::similarity::Matrix;

    #[test]
    fn equal_shares_take_the_same_pairs_on_another_scale() {
        // The second provider says the same as the first, squeezed: 0.2 + 0.5 · s.
        let side = 40;
        let first: Vec<f32> = (0..side * side).map(|n| ((n * 7919) % 1600) as f32 / 1600.0).collect();
        let second = first.iter().map(|s| 0.2 + 0.5 * s).collect();
        let (first, second) = (Matrix::new("a", side, first).unwrap(), Matrix::new("b", side, second).unwrap());
        let wanted = shares(&first, Thresholds::SIMCSE).unwrap();
        let (thresholds, _) = by_share(&second, wanted).unwrap();
        assert!((thresholds.positive - 0.65).abs() < 0.002, "{thresholds:?}");
        assert!((thresholds.negative - 0.45).abs() < 0.002, "{thresholds:?}");
    }

    fn spread(pairs: &[(f32, bool)]) -> Spread {
        let mut spread = Spread::empty();
        for (similarity, positive) in pairs {
            if *positive { &mut spread.positives } else { &mut spread.others }.count(*similarity);
        }
        spread
    }

    #[test]
    fn the_best_agreement_separates_what_can_be_separated() {
        let pairs = [(0.9, true), (0.8, true), (0.7, false), (0.6, true), (0.2, false), (0.1, false)];
        let (thresholds, calibration) = spread(&pairs).best_agreement(0.0).unwrap();
        // F1 at 0.8 is 2·2/(2+3) = 0.8, at 0.6 it is 2·3/(4+3) = 0.857.
        assert!((thresholds.positive - 0.6).abs() < 0.001, "{thresholds:?}");
        assert!(thresholds.negative < thresholds.positive && thresholds.negative > 0.59);
        let PoolCalibration::KnownPools(agreement) = calibration else { panic!("{calibration:?}") };
        assert_eq!((agreement.precision, agreement.recall, agreement.positives_lost), (0.75, 1.0, 0.0));
    }

    #[test]
    fn positives_that_words_cannot_see_push_the_negative_threshold_down() {
        let pairs = [(0.9, true), (0.8, true), (0.1, true), (0.5, false), (0.4, false), (0.3, false), (0.3, false)];
        let (strict, _) = spread(&pairs).best_agreement(0.0).unwrap();
        assert!((strict.positive - 0.8).abs() < 0.001 && (strict.negative - 0.1).abs() < 0.001, "{strict:?}");
        let (loose, _) = spread(&pairs).best_agreement(0.34).unwrap();
        assert!(loose.negative > 0.79, "{loose:?}");
    }

    #[test]
    fn thresholds_that_overlap_are_refused() {
        assert!(Thresholds { positive: 0.5, negative: 0.5 }.check().is_err());
        assert!(Thresholds { positive: f32::NAN, negative: 0.5 }.check().is_err());
        let matrix = Matrix::new("m", 1, vec![0.0]).unwrap();
        assert!(by_share(&matrix, Shares { positive: 0.5, negative: 0.5 }).is_err());
        assert!(spread(&[(0.5, true)]).best_agreement(0.0).is_err());
        assert!(spread(&[(0.5, false)]).best_agreement(0.0).is_err());
    }
}
