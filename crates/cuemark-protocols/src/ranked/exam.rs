//! An exam for people who want to rate: the same pairs for all, experts' median as the truth, feedback, a second try.

use std::collections::BTreeMap;

use cuemark_data::Rating;
use serde::Serialize;

use super::GRADES;
use super::agreement::{Table, Weighting, cohen};
use super::consensus::by_pair;
use crate::{ProtocolError, Result};

/// The right answers of an exam.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exam {
    truth: BTreeMap<u64, u8>,
    tolerance: u8,
}

/// One answer that is not in line with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// The pair.
    pub pair_id: u64,
    /// What the person said.
    pub given: u8,
    /// What the experts say.
    pub expected: u8,
}

/// How one person did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Marks {
    /// The person.
    pub worker: u64,
    /// Pairs of the exam that were answered.
    pub answered: usize,
    /// Pairs of the exam that were not.
    pub missing: usize,
    /// Share of the answers that are not in line with the truth; 0 without answers.
    pub disagreement: f64,
    /// Cohen's kappa with the truth; absent without answers.
    pub kappa: Option<f64>,
    /// What to look at again and relabel.
    pub feedback: Vec<Feedback>,
}

impl Exam {
    /// The experts' median grade of each pair is the truth, rounded up between two; an answer is in line with it when
    /// it differs by at most `tolerance`.
    ///
    /// # Errors
    /// When there is no rating or a grade is above 4.
    pub fn new(experts: &[Rating], tolerance: u8) -> Result<Self> {
        if experts.is_empty() {
            return Err(ProtocolError::NoMoments { what: "the experts' ratings".to_owned() });
        }
        let truth = by_pair(experts)?.into_iter().map(|(pair, grades)| (pair, median(grades))).collect();
        Ok(Self { truth, tolerance })
    }

    /// The right grade of each pair.
    pub fn truth(&self) -> &BTreeMap<u64, u8> {
        &self.truth
    }

    /// Marks everybody who answered, by id. Of several answers to one pair the last one counts.
    ///
    /// # Errors
    /// When an answer is to a pair outside the exam or a grade is above 4.
    pub fn mark(&self, answers: &[Rating]) -> Result<Vec<Marks>> {
        by_pair(answers)?;
        let mut workers: BTreeMap<u64, BTreeMap<u64, u8>> = BTreeMap::new();
        for answer in answers {
            if !self.truth.contains_key(&answer.pair_id) {
                let problem = "is not part of the exam".to_owned();
                return Err(ProtocolError::Ratings { pair: answer.pair_id, problem });
            }
            workers.entry(answer.worker).or_default().insert(answer.pair_id, answer.relevance);
        }
        Ok(workers.into_iter().map(|(worker, given)| self.mark_one(worker, &given)).collect())
    }

    fn mark_one(&self, worker: u64, given: &BTreeMap<u64, u8>) -> Marks {
        let mut table: Table = [[0; GRADES]; GRADES];
        let mut feedback = Vec::new();
        for (pair_id, given) in given {
            let Some(expected) = self.truth.get(pair_id) else { continue };
            table[usize::from(*expected)][usize::from(*given)] += 1;
            if given.abs_diff(*expected) > self.tolerance {
                feedback.push(Feedback { pair_id: *pair_id, given: *given, expected: *expected });
            }
        }
        Marks {
            worker,
            answered: given.len(),
            missing: self.truth.len() - given.len(),
            disagreement: feedback.len() as f64 / given.len().max(1) as f64,
            kappa: cohen(&table, Weighting::Plain),
            feedback,
        }
    }
}

/// Answers with the second tries put in their place, to be marked again.
///
/// # Errors
/// When a second try is to a pair that its person had no feedback on: only those are to be relabelled.
pub fn relabel(answers: &[Rating], marks: &[Marks], second: &[Rating]) -> Result<Vec<Rating>> {
    for rating in second {
        let had_feedback = marks
            .iter()
            .filter(|marks| marks.worker == rating.worker)
            .any(|marks| marks.feedback.iter().any(|feedback| feedback.pair_id == rating.pair_id));
        if !had_feedback {
            let problem = format!("worker {} was not asked to relabel it", rating.worker);
            return Err(ProtocolError::Ratings { pair: rating.pair_id, problem });
        }
    }
    Ok(answers.iter().chain(second).copied().collect())
}

/// The middle grade; the mean of the two middle ones, rounded up, of an even number.
fn median(mut grades: Vec<u8>) -> u8 {
    grades.sort_unstable();
    let middle = grades.len() / 2;
    if grades.len() % 2 == 1 { grades[middle] } else { (grades[middle - 1] + grades[middle]).div_ceil(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(worker: u64, grades: &[(u64, u8)]) -> Vec<Rating> {
        grades.iter().map(|(pair_id, relevance)| Rating { pair_id: *pair_id, worker, relevance: *relevance }).collect()
    }

    fn exam() -> Exam {
        let experts =
            [rate(1, &[(0, 4), (1, 2), (2, 0)]), rate(2, &[(0, 4), (1, 3), (2, 0)]), rate(3, &[(0, 1), (1, 3)])];
        Exam::new(&experts.concat(), 1).unwrap()
    }

    #[test]
    fn the_truth_is_the_median() {
        assert_eq!(exam().truth(), &BTreeMap::from([(0, 4), (1, 3), (2, 0)]));
        assert_eq!(median(vec![1, 2]), 2);
        assert_eq!(median(vec![4, 0, 1, 1]), 1);
    }

    #[test]
    fn answers_out_of_line_come_back_as_feedback() {
        let marks = exam().mark(&rate(9, &[(0, 2), (1, 2)])).unwrap();
        assert_eq!((marks[0].answered, marks[0].missing), (2, 1));
        assert_eq!(marks[0].feedback, [Feedback { pair_id: 0, given: 2, expected: 4 }]);
        assert_eq!(marks[0].disagreement, 0.5);
    }

    #[test]
    fn relabelling_replaces_what_feedback_asked_for_and_nothing_else() {
        let first = rate(9, &[(0, 2), (1, 3), (2, 0)]);
        let marks = exam().mark(&first).unwrap();
        let again = relabel(&first, &marks, &rate(9, &[(0, 4)])).unwrap();
        let marks_again = exam().mark(&again).unwrap();
        assert_eq!((marks_again[0].disagreement, marks_again[0].kappa), (0.0, Some(1.0)));
        assert!(relabel(&first, &marks, &rate(9, &[(1, 0)])).is_err());
        assert!(relabel(&first, &marks, &rate(8, &[(0, 4)])).is_err());
    }

    #[test]
    fn answers_to_foreign_pairs_are_refused() {
        let message = exam().mark(&rate(9, &[(77, 2)])).unwrap_err().to_string();
        assert_eq!(message, "pair `77`: is not part of the exam");
    }
}
