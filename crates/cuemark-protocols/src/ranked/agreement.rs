//! How far people who rate the same pairs agree.

use std::collections::BTreeMap;

use cuemark_data::Rating;
use serde::Serialize;

use super::GRADES;
use super::consensus::{ConsensusReport, by_pair, grade};
use crate::Result;

/// How much a disagreement by some grades counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// All disagreements alike.
    Plain,
    /// By the difference of the grades.
    Linear,
    /// By its square.
    Quadratic,
}

impl Weighting {
    fn of(self, a: usize, b: usize) -> f64 {
        let apart = a.abs_diff(b) as f64;
        match self {
            Self::Plain => f64::from(u8::from(a != b)),
            Self::Linear => apart,
            Self::Quadratic => apart * apart,
        }
    }
}

/// How often one person gave grade `a` where another gave grade `b`: `table[a][b]`.
pub type Table = [[usize; GRADES]; GRADES];

/// Cohen's kappa: 1 less observed disagreement over the disagreement that chance alone would bring.
///
/// 1 for identical raters, also when both give one grade throughout; 0 for raters who agree as often as chance. `None`
/// without a pair.
///
/// ```
/// use cuemark_protocols::ranked::agreement::{Weighting, cohen};
/// let mut table = [[0; 5]; 5];
/// (table[0][0], table[0][1], table[1][0], table[1][1]) = (20, 5, 10, 15);
/// let kappa = cohen(&table, Weighting::Plain).unwrap(); // observed 0.7, chance 0.5
/// assert!((kappa - 0.4).abs() < 1e-12);
/// ```
pub fn cohen(table: &Table, weighting: Weighting) -> Option<f64> {
    let total: usize = table.iter().flatten().sum();
    if total == 0 {
        return None;
    }
    let rows: Vec<usize> = table.iter().map(|row| row.iter().sum()).collect();
    let columns: Vec<usize> = (0..GRADES).map(|b| table.iter().map(|row| row[b]).sum()).collect();
    let (mut observed, mut chance) = (0.0, 0.0);
    for a in 0..GRADES {
        for b in 0..GRADES {
            let weight = weighting.of(a, b);
            observed += weight * table[a][b] as f64;
            chance += weight * rows[a] as f64 * columns[b] as f64 / total as f64;
        }
    }
    Some(if chance > 0.0 { 1.0 - observed / chance } else { 1.0 })
}

/// Fleiss' kappa over pairs that may have different numbers of ratings: `counts[g]` people gave a pair grade `g`.
///
/// Agreement within a pair is the share of its pairs of raters who gave the same grade; pairs with fewer than two
/// ratings are left out. 1 when everybody always agrees; `None` without a pair.
pub fn fleiss(counts: &[[usize; GRADES]]) -> Option<f64> {
    let rated: Vec<&[usize; GRADES]> = counts.iter().filter(|pair| pair.iter().sum::<usize>() >= 2).collect();
    if rated.is_empty() {
        return None;
    }
    let within = |pair: &[usize; GRADES]| {
        let raters: usize = pair.iter().sum();
        let same: usize = pair.iter().map(|n| n * n.saturating_sub(1)).sum();
        same as f64 / (raters * (raters - 1)) as f64
    };
    let observed = rated.iter().map(|pair| within(pair)).sum::<f64>() / rated.len() as f64;
    let all: f64 = rated.iter().map(|pair| pair.iter().sum::<usize>() as f64).sum();
    let chance: f64 = (0..GRADES).map(|g| (rated.iter().map(|pair| pair[g] as f64).sum::<f64>() / all).powi(2)).sum();
    Some(if chance < 1.0 { (observed - chance) / (1.0 - chance) } else { 1.0 })
}

/// Two people who rated some of the same pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RaterPair {
    /// Both, the smaller id first.
    pub workers: [u64; 2],
    /// Pairs that both rated.
    pub shared: usize,
    /// Cohen's kappa.
    pub kappa: f64,
    /// Cohen's kappa with quadratic weights.
    pub weighted_kappa: f64,
}

/// How far to trust a file of ratings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgreementReport {
    /// People who rated.
    pub workers: usize,
    /// Fleiss' kappa over all pairs.
    pub fleiss_kappa: Option<f64>,
    /// Mean of Cohen's kappa over two people, each as often as they shared pairs.
    pub cohen_kappa: Option<f64>,
    /// The same with quadratic weights.
    pub weighted_cohen_kappa: Option<f64>,
    /// Every two people who shared at least [`AgreementReport::least_shared`] pairs.
    pub rater_pairs: Vec<RaterPair>,
    /// Fewer shared pairs than this say nothing about two people.
    pub least_shared: usize,
    /// `spread[low][high]`: pairs whose lowest rating is `low` and highest `high`.
    pub spread: Table,
    /// What the consensus of these ratings gives.
    pub consensus: ConsensusReport,
}

/// Measures how far the ratings agree; people who shared fewer than `least_shared` pairs are not compared.
///
/// A second rating of one pair by the same person is not compared with the first.
///
/// # Errors
/// As [`grade`].
pub fn agreement(ratings: &[Rating], least_shared: usize) -> Result<AgreementReport> {
    let consensus = grade(ratings)?.report();
    let pairs = by_pair(ratings)?;
    let mut spread: Table = [[0; GRADES]; GRADES];
    let mut counts = Vec::with_capacity(pairs.len());
    for given in pairs.values() {
        let mut count = [0; GRADES];
        given.iter().for_each(|grade| count[usize::from(*grade)] += 1);
        counts.push(count);
        if let (Some(low), Some(high)) = (given.iter().min(), given.iter().max()) {
            spread[usize::from(*low)][usize::from(*high)] += 1;
        }
    }
    let tables = tables(ratings);
    let rater_pairs: Vec<RaterPair> = tables
        .iter()
        .filter_map(|(workers, table)| {
            let shared = table.iter().flatten().sum();
            let kappa = cohen(table, Weighting::Plain)?;
            let weighted_kappa = cohen(table, Weighting::Quadratic)?;
            (shared >= least_shared).then_some(RaterPair { workers: *workers, shared, kappa, weighted_kappa })
        })
        .collect();
    let mean = |value: fn(&RaterPair) -> f64| {
        let shared: usize = rater_pairs.iter().map(|pair| pair.shared).sum();
        let sum: f64 = rater_pairs.iter().map(|pair| value(pair) * pair.shared as f64).sum();
        (shared > 0).then(|| sum / shared as f64)
    };
    let mut workers: Vec<u64> = ratings.iter().map(|rating| rating.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    Ok(AgreementReport {
        workers: workers.len(),
        fleiss_kappa: fleiss(&counts),
        cohen_kappa: mean(|pair| pair.kappa),
        weighted_cohen_kappa: mean(|pair| pair.weighted_kappa),
        rater_pairs,
        least_shared,
        spread,
        consensus,
    })
}

/// For every two people, the grades they gave to the same pairs; rows are the smaller id's.
fn tables(ratings: &[Rating]) -> BTreeMap<[u64; 2], Table> {
    let mut pairs: BTreeMap<u64, Vec<&Rating>> = BTreeMap::new();
    for rating in ratings {
        pairs.entry(rating.pair_id).or_default().push(rating);
    }
    let mut tables: BTreeMap<[u64; 2], Table> = BTreeMap::new();
    for given in pairs.values() {
        for (place, first) in given.iter().enumerate() {
            for second in &given[place + 1..] {
                let (low, high) = if first.worker < second.worker { (first, second) } else { (second, first) };
                if low.worker != high.worker {
                    let table = tables.entry([low.worker, high.worker]).or_insert([[0; GRADES]; GRADES]);
                    table[usize::from(low.relevance)][usize::from(high.relevance)] += 1;
                }
            }
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_data::read_ratings;
    use cuemark_formats::Source;
    use proptest::prelude::*;

    fn two_workers(grades: &[(u8, u8)]) -> Vec<Rating> {
        let rate = |pair_id, worker, relevance| Rating { pair_id, worker, relevance };
        (0..).zip(grades).flat_map(|(pair, (a, b))| [rate(pair, 1, *a), rate(pair, 2, *b)]).collect()
    }

    #[test]
    fn fleiss_is_the_one_worked_out_by_hand() {
        // Three raters, pairs 3-0 and 1-2: agreement (1 + 1/3) / 2 = 2/3; grades 4/6 and 2/6: chance 5/9.
        let counts = [[3, 0, 0, 0, 0], [1, 2, 0, 0, 0]];
        assert!((fleiss(&counts).unwrap() - (2.0 / 3.0 - 5.0 / 9.0) / (4.0 / 9.0)).abs() < 1e-12);
        assert_eq!(fleiss(&[[1, 0, 0, 0, 0]]), None);
    }

    #[test]
    fn near_misses_count_less_when_weighted() {
        let near = agreement(&two_workers(&[(0, 1), (1, 0), (4, 3), (3, 4), (2, 2)]), 1).unwrap();
        // Every grade is given once by each: one fifth agrees, as by chance; squared differences are 4 where chance has 20.
        assert!(near.cohen_kappa.unwrap().abs() < 1e-12);
        assert!((near.weighted_cohen_kappa.unwrap() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_spread_shows_lowest_and_highest_ratings() {
        let report = agreement(&two_workers(&[(0, 4), (4, 0), (2, 2), (1, 2)]), 1).unwrap();
        assert_eq!((report.spread[0][4], report.spread[2][2], report.spread[1][2]), (2, 1, 1));
        assert_eq!(report.spread.iter().flatten().sum::<usize>(), 4);
    }

    #[test]
    fn people_who_shared_little_are_not_compared() {
        let report = agreement(&two_workers(&[(0, 0), (1, 1)]), 3).unwrap();
        assert!(report.rater_pairs.is_empty());
        assert_eq!(report.cohen_kappa, None);
        assert_eq!(report.fleiss_kappa, Some(1.0));
    }

    #[test]
    fn the_published_ratings_spread_as_counted_by_another_program() {
        let Some(path) = cuemark_testkit::shared("data/tvr-ranking/raw_annotation.csv.gz") else { return };
        let report = agreement(&read_ratings(&Source::new(path)).unwrap(), 50).unwrap();
        // Counted with awk. The paper speaks of 23 people, of whom 21 are in the file, and prints 0.01 for lowest 0
        // and highest 4, which is the fraction 655 / 96,483 and not a percentage.
        assert_eq!(report.workers, 21);
        let expected = [
            [5507, 8141, 3534, 3376, 655],
            [0, 7473, 13605, 4230, 1660],
            [0, 0, 11381, 13163, 2528],
            [0, 0, 0, 7738, 6713],
            [0, 0, 0, 0, 6779],
        ];
        assert_eq!(report.spread, expected);
        // Worked out with a few lines of Python over the same file.
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(near(report.fleiss_kappa, 0.286_278_866_685_354));
        assert!(near(report.cohen_kappa, 0.152_572_946_448_753));
        assert!(near(report.weighted_cohen_kappa, 0.452_373_783_229_124));
        assert_eq!(report.rater_pairs.len(), 135);
    }

    proptest! {
        #[test]
        fn identical_raters_have_kappa_one(grades in proptest::collection::vec(0u8..5, 1..40)) {
            let same: Vec<(u8, u8)> = grades.iter().map(|grade| (*grade, *grade)).collect();
            let report = agreement(&two_workers(&same), 1).unwrap();
            prop_assert_eq!(report.cohen_kappa, Some(1.0));
            prop_assert_eq!(report.weighted_cohen_kappa, Some(1.0));
            prop_assert!((report.fleiss_kappa.unwrap() - 1.0).abs() < 1e-12);
        }

        #[test]
        fn kappa_does_not_care_who_is_first(grades in proptest::collection::vec((0u8..5, 0u8..5), 1..40)) {
            let swapped: Vec<(u8, u8)> = grades.iter().map(|(a, b)| (*b, *a)).collect();
            let (one, two) = (agreement(&two_workers(&grades), 1).unwrap(), agreement(&two_workers(&swapped), 1).unwrap());
            prop_assert!((one.cohen_kappa.unwrap() - two.cohen_kappa.unwrap()).abs() < 1e-12);
            prop_assert!(one.cohen_kappa.unwrap() <= 1.0);
        }
    }
}
