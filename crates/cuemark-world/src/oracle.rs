//! Answering from the event log: what a method without any weakness would say.

use camino::Utf8Path;
use cuemark_core::{Extra, Prediction, Predictions, QueryPredictions, RowPolicy, Truth};
use cuemark_formats::{Source, read_truth, world_folder};

use crate::{Result, WorldLog, raters, relevance};

/// Moments that do not answer in full are listed after those that do, up to this many in all.
const LISTED: usize = 100;

/// The oracle's answers to the queries of one split of the world in folder `world`.
///
/// # Errors
/// When the split or the log cannot be read.
pub fn oracle(world: &Utf8Path, split: &str) -> Result<Predictions> {
    let log = WorldLog::open(world)?;
    let split = read_truth(&Source::new(world_folder::split(world, split)), RowPolicy::Keep)?;
    answer(&log, &split.queries)
}

/// The oracle's answers to `truths`, of which it reads only the query's id and where to search: the query's own video,
/// or its pool. Best first; ties by video, then by start.
pub(crate) fn answer(log: &WorldLog, truths: &[Truth]) -> Result<Predictions> {
    let answers = truths.iter().map(|truth| {
        let query = &truth.query.id;
        let meaning = log.meaning(query)?;
        let own = truth.video.iter().map(|video| &video.id);
        let pool = truth.pool.iter().flatten().filter(|_| truth.video.is_none());
        let mut graded = Vec::new();
        for video in own.chain(pool) {
            let film = log.film(query, video)?;
            let answers = relevance::answers(meaning, film);
            let spans = relevance::moments(film).into_iter();
            // Another event at nearly the same time is as good by its grade, but it is not what was asked for.
            let exact = |span| if answers.contains(&span) { 0.5 } else { 0.0 };
            let score = |span| f64::from(relevance::grade(meaning, film, span)) + exact(span);
            graded.extend(spans.map(|span| (score(span), video, span)));
        }
        graded.sort_by(|(a, a_video, a_span), (b, b_video, b_span)| {
            b.total_cmp(a).then(a_video.cmp(b_video)).then(a_span.start().total_cmp(&b_span.start()))
        });
        graded.truncate(LISTED);
        let ranked = graded.into_iter().map(|(score, video, span)| Prediction {
            video: Some(video.clone()),
            span,
            score: Some(score),
        });
        // What every clip of its own video shows: raters who agreed would say the same.
        let own = truth.video.as_ref().map(|video| log.film(query, &video.id)).transpose()?;
        let saliency = own.map(|film| raters::visible(meaning, film));
        Ok(QueryPredictions { query: query.clone(), ranked: ranked.collect(), saliency, extra: Extra::default() })
    });
    Ok(Predictions::any(answers.collect::<Result<_>>()?))
}
