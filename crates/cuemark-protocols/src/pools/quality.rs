//! Pools compared with answers that are known.

use std::collections::{HashMap, HashSet};

use cuemark_core::{QueryId, Truth, VideoId};
use serde::Serialize;

/// How well pools agree with known answers; the queries' own videos are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Pools whose query is known.
    pub queries: usize,
    /// Videos that pools call positive.
    pub positives: usize,
    /// Of those, the share that is known to be positive; 1 when there is none.
    pub precision: f64,
    /// Of the known positives inside pools, the share that pools call positive; 1 when there is none.
    pub recall: f64,
    /// Videos that pools call negative.
    pub negatives: usize,
    /// Of those, the share that is known to be positive: right answers that would be counted as wrong.
    pub false_negatives: f64,
}

/// Compares `pools` with `known`, whose right moments lie in the videos that are known to answer each query.
pub fn quality(pools: &[Truth], known: &[Truth]) -> Quality {
    let known: HashMap<&QueryId, HashSet<&VideoId>> =
        known.iter().map(|truth| (&truth.query.id, truth.right().map(|moment| &moment.video).collect())).collect();
    let (mut queries, mut hits, mut positives, mut misses, mut negatives) = (0, 0, 0, 0, 0);
    for truth in pools {
        let Some(answers) = known.get(&truth.query.id) else { continue };
        queries += 1;
        let called: HashSet<&VideoId> = truth.right().map(|moment| &moment.video).collect();
        let own = truth.video.as_ref().map(|video| &video.id);
        for video in truth.pool.iter().flatten().filter(|video| Some(*video) != own) {
            let is_answer = usize::from(answers.contains(video));
            if called.contains(video) {
                (positives, hits) = (positives + 1, hits + is_answer);
            } else {
                (negatives, misses) = (negatives + 1, misses + is_answer);
            }
        }
    }
    let share = |part: usize, whole: usize, empty: f64| if whole == 0 { empty } else { part as f64 / whole as f64 };
    Quality {
        queries,
        positives,
        precision: share(hits, positives, 1.0),
        recall: share(hits, hits + misses, 1.0),
        negatives,
        false_negatives: share(misses, negatives, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::{GradedMoment, Query, Span, Video};

    fn truth(answers: &[&str], pool: &[&str]) -> Truth {
        let query = Query { id: "q".into(), text: String::new() };
        let moments = answers.iter().map(|id| GradedMoment::right((*id).into(), Span::whole(1.0))).collect();
        let pool = Some(pool.iter().map(|id| (*id).into()).collect());
        Truth { video: Some(Video::new("own", 9.0)), moments, pool, ..Truth::bare(query) }
    }

    #[test]
    fn the_counts_are_those_made_by_hand() {
        let pools = [truth(&["own", "a", "b"], &["own", "a", "b", "c", "d"])];
        let known = [truth(&["own", "a", "c", "z"], &[])];
        let found = quality(&pools, &known);
        assert_eq!((found.positives, found.precision), (2, 0.5)); // a is right, b is not
        assert_eq!((found.negatives, found.false_negatives), (2, 0.5)); // c was missed, d is negative
        assert_eq!(found.recall, 0.5); // a of a and c; z is in no pool
    }
}
