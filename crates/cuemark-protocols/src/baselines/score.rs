//! How well first answers do, in the coordinates of the bias papers.

use std::collections::HashMap;

use cuemark_core::{NormSpan, Predictions, QueryId, QueryPredictions, Task, Truth, VideoId};

use crate::Result;
use crate::pairs::{pairs_of, video_of};

/// What one query's first answer earns.
pub(crate) struct QueryCredits<'a> {
    /// The query's video.
    pub(crate) video: &'a VideoId,
    /// For each threshold the discounted credit of a hit, `None` for a miss.
    pub(crate) credits: Vec<Option<f64>>,
}

/// What the first answer to every query that has a moment earns at each of `thresholds`.
///
/// As the bias papers' table was made: times divided by the duration, clipped to 0..1, intersection over hull, `>=`; a hit counts
/// `(1 - |Δstart|) · (1 - |Δend|)`, both in fractions of the video. With several moments the best one counts. A query without
/// an answer is a miss; one without a moment is not counted.
///
/// # Errors
/// When a query is about no single video or its duration is not known.
pub(crate) fn credits_of_first<'a>(
    predictions: &Predictions,
    truths: &'a [Truth],
    thresholds: &[f64],
) -> Result<Vec<QueryCredits<'a>>> {
    let lists = predictions.for_task(Task::Any).unwrap_or_default();
    let list_of: HashMap<&QueryId, &QueryPredictions> = lists.iter().map(|list| (&list.query, list)).collect();
    let mut queries = Vec::with_capacity(truths.len());
    for truth in truths {
        let pairs = pairs_of(truth)?;
        if pairs.is_empty() {
            continue;
        }
        let (video, duration) = video_of(truth)?;
        let first = list_of.get(&truth.query.id).and_then(|list| list.ranked.first());
        let answer = first.and_then(|prediction| NormSpan::of(prediction.span, duration)).map(NormSpan::clipped);
        let best = |threshold: &f64| {
            let credits = pairs.iter().filter_map(|pair| credit_of(answer?, pair.span.clipped(), *threshold));
            credits.reduce(f64::max)
        };
        queries.push(QueryCredits { video, credits: thresholds.iter().map(best).collect() });
    }
    Ok(queries)
}

/// The discounted credit of a hit, `None` for a miss.
fn credit_of(answer: NormSpan, truth: NormSpan, threshold: f64) -> Option<f64> {
    let off_start = (answer.start() - truth.start()).abs();
    let off_end = (answer.end() - truth.end()).abs();
    (answer.iou_hull(truth) >= threshold).then_some((1.0 - off_start) * (1.0 - off_end))
}
