//! Refusing: queries whose truth names no moment should get no answer.
//!
//! A truth without a span is legal: the moment is not in the video. Recall and its kin leave such a query out; the two
//! metrics here look at nothing else. An answer is refused when its list is empty.

use serde::Serialize;

/// Whether this refusal is right: 1 when the query has no moment, 0 when it has one, `None` when it was answered.
///
/// The mean is **precision at refusing** (`Refusal:precision`).
///
/// ```
/// # use cuemark_metrics::{refusal_precision, Answerable};
/// assert_eq!(refusal_precision(Answerable::No, 0), Some(1.0));
/// assert_eq!(refusal_precision(Answerable::Yes, 0), Some(0.0));
/// assert_eq!(refusal_precision(Answerable::No, 3), None); // three answers: nothing was refused
/// ```
pub fn refusal_precision(query: Answerable, answers: usize) -> Option<f64> {
    (answers == 0).then(|| f64::from(u8::from(query == Answerable::No)))
}

/// Whether a query without a moment was refused; `None` for queries that have one.
///
/// The mean is **recall at refusing** (`Refusal:recall`).
///
/// ```
/// # use cuemark_metrics::{refusal_recall, Answerable};
/// assert_eq!(refusal_recall(Answerable::No, 0), Some(1.0));
/// assert_eq!(refusal_recall(Answerable::No, 3), Some(0.0));
/// assert_eq!(refusal_recall(Answerable::Yes, 0), None);
/// ```
pub fn refusal_recall(query: Answerable, answers: usize) -> Option<f64> {
    (query == Answerable::No).then(|| f64::from(u8::from(answers == 0)))
}

/// Whether the truth names a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerable {
    /// It names at least one.
    Yes,
    /// It names none.
    No,
}

/// One query on an abstention curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ventured {
    /// Whether there is anything to find.
    pub query: Answerable,
    /// Score of the first answer; `None` when the list is empty. Answers without a score count as equally sure.
    pub score: Option<f64>,
    /// Whether the first answer overlaps a right moment by half or more.
    pub is_hit: bool,
}

/// What refusing every answer below a threshold would give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbstentionPoint {
    /// Answers with a lower score are refused; `None`: only empty lists are.
    pub threshold: Option<f64>,
    /// Share of all queries that is refused.
    pub refused: f64,
    /// Share of the refused that has no moment; `None` when nothing is refused.
    pub precision: Option<f64>,
    /// Share of the queries without a moment that is refused.
    pub recall: f64,
    /// Share of the queries that are still answered whose first answer is right (IoU ≥ 0.5); `None` when none is.
    pub right: Option<f64>,
}

/// How well scores tell queries with a moment from queries without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Abstention {
    /// Queries with a moment.
    pub answerable: usize,
    /// Queries without.
    pub unanswerable: usize,
    /// Chance that a query with a moment is answered with a higher score than one without; ties count half, an empty list is
    /// below every score. 0.5 is what scores that know nothing reach.
    pub auroc: f64,
    /// From refusing only what was not answered to refusing nearly everything; at most [`POINTS`] thresholds.
    pub curve: Vec<AbstentionPoint>,
}

/// Thresholds on a curve at the most.
pub const POINTS: usize = 101;

/// The abstention curve; `None` unless there are queries with a moment and queries without.
///
/// ```
/// # use cuemark_metrics::{abstention, Answerable, Ventured};
/// let at = |query, score, is_hit| Ventured { query, score: Some(score), is_hit };
/// let found = abstention(&[
///     at(Answerable::Yes, 0.9, true),
///     at(Answerable::Yes, 0.4, false),
///     at(Answerable::No, 0.6, false),
/// ]).unwrap();
/// assert_eq!(found.auroc, 0.5); // 0.9 beats 0.6, 0.4 does not
/// let strict = found.curve.last().unwrap(); // only 0.9 is still answered
/// assert_eq!((strict.threshold, strict.precision, strict.recall, strict.right), (Some(0.9), Some(0.5), 1.0, Some(1.0)));
/// ```
pub fn abstention(queries: &[Ventured]) -> Option<Abstention> {
    let unanswerable = queries.iter().filter(|query| query.query == Answerable::No).count();
    let answerable = queries.len() - unanswerable;
    if unanswerable == 0 || answerable == 0 {
        return None;
    }
    let mut sorted: Vec<Ventured> = queries.to_vec();
    let key = |query: &Ventured| query.score.unwrap_or(f64::NEG_INFINITY);
    sorted.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let mut points = Vec::new();
    let (mut below, mut below_without, mut wins) = (0usize, 0usize, 0.0);
    let mut hits = sorted.iter().filter(|query| query.is_hit).count();
    let mut from = 0;
    while from < sorted.len() {
        let score = key(&sorted[from]);
        let same = sorted[from..].iter().take_while(|query| key(query) == score).count();
        let group = &sorted[from..from + same];
        if score > f64::NEG_INFINITY || from > 0 {
            points.push(point(Some(score), queries.len(), below, below_without, unanswerable, hits));
        }
        let without = group.iter().filter(|query| query.query == Answerable::No).count();
        // Each answerable query of this group beats every one below and ties with those beside it.
        wins += (same - without) as f64 * (below_without as f64 + 0.5 * without as f64);
        below += same;
        below_without += without;
        hits -= group.iter().filter(|query| query.is_hit).count();
        from += same;
    }
    if let Some(first) = points.first_mut() {
        first.threshold = None;
    }
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let curve =
        points.into_iter().enumerate().filter(|(n, _)| n % step == 0 || *n == last).map(|(_, point)| point).collect();
    Some(Abstention { answerable, unanswerable, auroc: wins / (answerable as f64 * unanswerable as f64), curve })
}

fn point(
    threshold: Option<f64>,
    all: usize,
    refused: usize,
    without: usize,
    unanswerable: usize,
    hits: usize,
) -> AbstentionPoint {
    AbstentionPoint {
        threshold,
        refused: refused as f64 / all as f64,
        precision: (refused > 0).then(|| without as f64 / refused as f64),
        recall: without as f64 / unanswerable as f64,
        right: (all > refused).then(|| hits as f64 / (all - refused) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(query: Answerable, score: Option<f64>, is_hit: bool) -> Ventured {
        Ventured { query, score, is_hit }
    }

    #[test]
    fn an_empty_list_is_refused_before_any_threshold() {
        let queries = [
            at(Answerable::No, None, false),
            at(Answerable::No, Some(0.2), false),
            at(Answerable::Yes, Some(0.2), true),
            at(Answerable::Yes, Some(0.8), false),
        ];
        let found = abstention(&queries).unwrap();
        // Pairs (with, without): 0.2 beats nothing and ties 0.2; 0.8 beats both: 1 + 0.5 + 1 + 1 of 4.
        assert_eq!(found.auroc, 3.5 / 4.0);
        let first = AbstentionPoint {
            threshold: None,
            refused: 0.25,
            precision: Some(1.0),
            recall: 0.5,
            right: Some(1.0 / 3.0),
        };
        let second = AbstentionPoint {
            threshold: Some(0.8),
            refused: 0.75,
            precision: Some(2.0 / 3.0),
            recall: 1.0,
            right: Some(0.0),
        };
        assert_eq!(found.curve, [first, second]);
    }

    #[test]
    fn scores_that_say_nothing_reach_half() {
        let queries = [at(Answerable::Yes, Some(1.0), true), at(Answerable::No, Some(1.0), false)];
        assert_eq!(abstention(&queries).unwrap().auroc, 0.5);
        assert_eq!(abstention(&queries[..1]), None, "there is nothing to refuse");
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let query =
            |n: usize| at(if n.is_multiple_of(2) { Answerable::Yes } else { Answerable::No }, Some(n as f64), false);
        let found = abstention(&(0..5_000).map(query).collect::<Vec<_>>()).unwrap();
        assert!(found.curve.len() <= POINTS + 1);
        assert_eq!(found.curve[0].threshold, None);
        assert_eq!(found.curve.last().unwrap().threshold, Some(4_999.0));
    }
}
