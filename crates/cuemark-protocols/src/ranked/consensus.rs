//! One grade from two or four ratings, or none.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cuemark_data::Rating;
use cuemark_formats::Overwrite;
use serde::Serialize;

use super::GRADES;
use crate::manifest::Manifest;
use crate::{ProtocolError, Result};

/// The grade that two or four ratings agree on.
///
/// Of four, one highest and one lowest are dropped. The two that are left agree when they differ by at most 1, and then
/// their mean, rounded up, is the grade. `None` when they do not agree, or when there are not two or four.
///
/// ```
/// use cuemark_protocols::ranked::consensus::consensus;
/// assert_eq!(consensus(&[2, 3]), Some(3));
/// assert_eq!(consensus(&[1, 3]), None);
/// assert_eq!(consensus(&[0, 4, 2, 1]), Some(2)); // 0 and 4 are dropped
/// ```
pub fn consensus(ratings: &[u8]) -> Option<u8> {
    let mut sorted = ratings.to_vec();
    sorted.sort_unstable();
    let ([low, high] | [_, low, high, _]) = sorted[..] else { return None };
    (high - low <= 1).then_some(high)
}

/// The grades of all pairs, and how they came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grades {
    /// The pairs with a grade.
    pub grades: BTreeMap<u64, u8>,
    /// The pairs whose ratings do not agree.
    pub discarded: Vec<u64>,
    /// How many ratings there were.
    pub ratings: usize,
}

/// The counts of [`Grades`], as `rank consensus --json` prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsensusReport {
    /// Ratings.
    pub ratings: usize,
    /// Rated query-moment pairs.
    pub pairs: usize,
    /// Pairs with a grade.
    pub kept: usize,
    /// Pairs without one.
    pub discarded: usize,
    /// Pairs of each grade.
    pub scores: BTreeMap<u8, usize>,
}

/// Grades every rated pair.
///
/// # Errors
/// When there is no rating, a grade is above 4, or a pair has neither two nor four ratings.
pub fn grade(ratings: &[Rating]) -> Result<Grades> {
    if ratings.is_empty() {
        return Err(ProtocolError::NoMoments { what: "the ratings".to_owned() });
    }
    let mut grades = BTreeMap::new();
    let mut discarded = Vec::new();
    for (pair, given) in by_pair(ratings)? {
        if given.len() != 2 && given.len() != 4 {
            let problem = format!("has {} ratings where 2 or 4 make a consensus", given.len());
            return Err(ProtocolError::Ratings { pair, problem });
        }
        match consensus(&given) {
            Some(grade) => {
                grades.insert(pair, grade);
            }
            None => discarded.push(pair),
        }
    }
    Ok(Grades { grades, discarded, ratings: ratings.len() })
}

/// The ratings of each pair, in file order.
pub(super) fn by_pair(ratings: &[Rating]) -> Result<BTreeMap<u64, Vec<u8>>> {
    let mut pairs: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for rating in ratings {
        if usize::from(rating.relevance) >= GRADES {
            let problem = format!("grade {} is not between 0 and {}", rating.relevance, GRADES - 1);
            return Err(ProtocolError::Ratings { pair: rating.pair_id, problem });
        }
        pairs.entry(rating.pair_id).or_default().push(rating.relevance);
    }
    Ok(pairs)
}

impl Grades {
    /// The counts.
    pub fn report(&self) -> ConsensusReport {
        let mut scores: BTreeMap<u8, usize> = (0..GRADES as u8).map(|grade| (grade, 0)).collect();
        for grade in self.grades.values() {
            *scores.entry(*grade).or_default() += 1;
        }
        ConsensusReport {
            ratings: self.ratings,
            pairs: self.grades.len() + self.discarded.len(),
            kept: self.grades.len(),
            discarded: self.discarded.len(),
            scores,
        }
    }

    /// Writes `pair_id,relevance`, pairs ascending, with a manifest beside it.
    ///
    /// # Errors
    /// When something stands there already and may not be replaced, or a file cannot be written.
    pub fn write(&self, out: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        Manifest::new("rank-consensus", 1, (), self.report()).write_with(out, overwrite, |file| {
            file.put(b"pair_id,relevance\n")?;
            for (pair, grade) in &self.grades {
                file.put(format!("{pair},{grade}\n").as_bytes())?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_data::read_ratings;
    use cuemark_formats::Source;
    use proptest::prelude::*;

    fn rate(pair_id: u64, grades: &[u8]) -> Vec<Rating> {
        (0..).zip(grades).map(|(worker, relevance)| Rating { pair_id, worker, relevance: *relevance }).collect()
    }

    #[test]
    fn a_difference_of_one_agrees_and_of_two_does_not() {
        assert_eq!(consensus(&[4, 4]), Some(4));
        assert_eq!(consensus(&[0, 1]), Some(1));
        assert_eq!(consensus(&[0, 2]), None);
        assert_eq!(consensus(&[3, 3, 0, 4]), Some(3));
        assert_eq!(consensus(&[1, 3, 0, 4]), None);
        assert_eq!(consensus(&[2]), None);
        assert_eq!(consensus(&[2, 2, 2]), None);
    }

    #[test]
    fn only_one_highest_and_one_lowest_are_dropped() {
        // Dropping every 4 would leave 2 and nothing to compare it with.
        assert_eq!(consensus(&[2, 4, 4, 4]), Some(4));
    }

    #[test]
    fn pairs_with_other_numbers_of_ratings_are_refused() {
        let message = grade(&rate(17, &[1, 2, 3])).unwrap_err().to_string();
        assert_eq!(message, "pair `17`: has 3 ratings where 2 or 4 make a consensus");
        assert_eq!(grade(&rate(3, &[1, 9])).unwrap_err().to_string(), "pair `3`: grade 9 is not between 0 and 4");
        assert!(grade(&[]).is_err());
    }

    fn fixture_report(path: camino::Utf8PathBuf) -> String {
        let ratings = read_ratings(&Source::new(path)).unwrap();
        serde_json::to_string(&grade(&ratings).unwrap().report()).unwrap()
    }

    #[test]
    fn a_small_file_is_graded_as_by_hand() {
        let expected = "{\"ratings\":20,\"pairs\":7,\"kept\":5,\"discarded\":2,\
                        \"scores\":{\"0\":1,\"1\":1,\"2\":1,\"3\":1,\"4\":1}}";
        assert_eq!(fixture_report(cuemark_testkit::fixture("protocols/ranked/ratings.csv")), expected);
    }

    #[test]
    fn the_published_ratings_give_the_published_grades() {
        let Some(path) = cuemark_testkit::shared("data/tvr-ranking/raw_annotation.csv.gz") else { return };
        let expected = "{\"ratings\":227808,\"pairs\":96483,\"kept\":94442,\"discarded\":2041,\
                        \"scores\":{\"0\":5929,\"1\":19245,\"2\":30056,\"3\":24439,\"4\":14773}}";
        assert_eq!(fixture_report(path), expected);
    }

    proptest! {
        #[test]
        fn the_order_of_ratings_does_not_matter(grades in proptest::collection::vec(0u8..5, 4), turn in 0usize..4) {
            let mut turned = grades.clone();
            turned.rotate_left(turn);
            turned.swap(0, 2);
            prop_assert_eq!(consensus(&grades), consensus(&turned));
            prop_assert_eq!(consensus(&grades[..2]), consensus(&[grades[1], grades[0]]));
        }

        #[test]
        fn the_grade_is_one_that_somebody_gave(grades in proptest::collection::vec(0u8..5, 4)) {
            if let Some(grade) = consensus(&grades) {
                prop_assert!(grades.contains(&grade));
            }
        }
    }
}
