//! How good an index answers, measured on queries whose answers are known.

use std::time::Instant;

use cuemark_core::{Progress, Relevance, Truth, VideoId};
use cuemark_metrics::{GradedSpan, Judge, ndcg_at};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::{Answer, Effort, Filter, Index, Question, Reliability, Result, RightMoments, Stages};

/// How to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct QualityOptions {
    /// Answers per question. Default: 10
    pub answers: usize,
    /// The overlap from which an answer counts for NDCG. Default: 0.5
    pub iou: f64,
    /// Sizes of the first of two stages, in videos. Default: 10, 50, 200
    pub two_stage: Vec<usize>,
}

impl Default for QualityOptions {
    fn default() -> Self {
        Self { answers: 10, iou: 0.5, two_stage: vec![10, 50, 200] }
    }
}

/// How good an index answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quality {
    /// Queries asked: those that have a right answer among the videos of the index.
    pub queries: usize,
    /// Queries left out because they have none.
    pub without_answer: usize,
    /// Videos of the index.
    pub videos: usize,
    /// Moments of the index.
    pub moments: usize,
    /// Exhaustive search first, then the ways that save time.
    pub ways: Vec<WayQuality>,
    /// Probabilities of the usual search, where there is a right answer.
    pub present: Reliability,
    /// The same queries asked of the videos that have no right answer.
    pub absent: Reliability,
    /// Both together.
    pub all: Reliability,
    /// Share of queries with an answer that are told "nothing good enough".
    pub silent_when_present: f64,
    /// Share of queries without one that are told so.
    pub silent_when_absent: f64,
    /// Share of queries without an answer that would be refused by a cut at which seven of ten right first answers stay: whether
    /// the probability can tell at all, wherever the line is drawn.
    pub refused_keeping_seven: f64,
}

/// How good one way of asking is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayQuality {
    /// What it is.
    pub way: String,
    /// Mean over queries.
    pub ndcg: f64,
    /// That as a share of exhaustive search's.
    pub of_exhaustive: f64,
    /// R@1: share of queries whose first answer is right.
    pub first_right: f64,
    /// Share of exhaustive search's answers that are among its answers.
    pub same_answers: f64,
    /// Mean **milliseconds** of one question, its embedding known.
    pub milliseconds: f64,
}

/// Sums over queries of one way.
#[derive(Debug, Clone, Default)]
struct Sums {
    ndcg: f64,
    first_right: usize,
    same: usize,
    wanted: usize,
    seconds: f64,
}

impl Quality {
    /// Asks every query in every way. A query is asked of its pool where it has one, of the whole index otherwise; `progress`
    /// counts queries.
    ///
    /// # Errors
    /// As [`Index::answer`], and when the work was stopped.
    pub fn of(index: &Index, truths: &[Truth], options: &QualityOptions, progress: &Progress) -> Result<Self> {
        progress.phase("asking", truths.len());
        let videos: FxHashSet<VideoId> = index.engine().videos()?.into_iter().map(|entry| entry.id).collect();
        let ways = ways(options);
        let mut sums = vec![Sums::default(); ways.len()];
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        let (mut queries, mut silent) = (0, [0usize; 2]);
        let (mut right_firsts, mut absent_firsts) = (Vec::new(), Vec::new());
        for truth in truths {
            progress.advance(1)?;
            let within: FxHashSet<VideoId> = match &truth.pool {
                Some(pool) => pool.iter().filter(|video| videos.contains(*video)).cloned().collect(),
                None => videos.clone(),
            };
            let right = RightMoments::of(truth);
            let graded: Vec<GradedSpan> = truth
                .moments
                .iter()
                .filter(|one| within.contains(&one.moment.video))
                .map(|one| GradedSpan {
                    video: &one.moment.video,
                    span: one.moment.span,
                    relevance: one.relevance.map_or(1.0, Relevance::value),
                })
                .collect();
            if !within.iter().any(|video| right.are_in(video)) {
                continue;
            }
            queries += 1;
            let everywhere = within.len() == videos.len();
            let without: FxHashSet<VideoId> = within.iter().filter(|video| !right.are_in(video)).cloned().collect();
            let filter = Filter { videos: (!everywhere).then_some(within), ..Filter::default() };
            let plain = Question { filter, limit: options.answers, ..Question::sentence(&truth.query.text) };
            let exhaustive = index.answer(&Question { effort: Effort::Exact, ..plain.clone() })?.moments;
            for ((_, effort, stages), sums) in ways.iter().zip(&mut sums) {
                let question = Question { effort: *effort, stages: *stages, ..plain.clone() };
                let began = Instant::now();
                let found = index.answer(&question)?;
                sums.seconds += began.elapsed().as_secs_f64();
                sums.add(&found.moments, &exhaustive, &right, &graded, options);
                if (*effort, *stages) == (Effort::Approximate, Stages::One) {
                    silent[0] += usize::from(found.good == 0);
                    present.extend(judged(&found.moments, &right));
                    let is_right = |best: &&Answer| right.found_by(&best.video, best.span);
                    right_firsts.extend(found.moments.first().filter(is_right).map(|best| best.probability));
                }
            }
            let elsewhere = Filter { videos: Some(without), ..Filter::default() };
            let found = index.answer(&Question { filter: elsewhere, ..plain })?;
            silent[1] += usize::from(found.good == 0);
            absent.extend(judged(&found.moments, &right));
            absent_firsts.push(found.moments.first().map_or(0.0, |best| best.probability));
        }
        let both = [present.as_slice(), absent.as_slice()].concat();
        let status = index.engine().status()?;
        let share = |count: usize| count as f64 / queries.max(1) as f64;
        let best = sums.first().map_or(0.0, |sums| sums.ndcg).max(f64::MIN_POSITIVE);
        let way = |((way, _, _), sums): (&(String, Effort, Stages), &Sums)| WayQuality {
            way: way.clone(),
            ndcg: sums.ndcg / queries.max(1) as f64,
            of_exhaustive: sums.ndcg / best,
            first_right: share(sums.first_right),
            same_answers: sums.same as f64 / sums.wanted.max(1) as f64,
            milliseconds: 1e3 * sums.seconds / queries.max(1) as f64,
        };
        Ok(Self {
            queries,
            without_answer: truths.len() - queries,
            videos: status.videos,
            moments: status.moments,
            ways: ways.iter().zip(&sums).map(way).collect(),
            present: Reliability::of(&present),
            absent: Reliability::of(&absent),
            all: Reliability::of(&both),
            silent_when_present: share(silent[0]),
            silent_when_absent: share(silent[1]),
            refused_keeping_seven: refused_keeping(0.7, right_firsts, &absent_firsts),
        })
    }
}

/// The share of `absent` below the highest cut that keeps so much of `right`.
fn refused_keeping(share: f64, mut right: Vec<f64>, absent: &[f64]) -> f64 {
    right.sort_by(f64::total_cmp);
    let lost = ((1.0 - share) * right.len() as f64).floor() as usize;
    let Some(cut) = right.get(lost) else { return 0.0 };
    absent.iter().filter(|probability| *probability < cut).count() as f64 / absent.len().max(1) as f64
}

/// Exhaustive search, the usual one, and two stages of every size.
fn ways(options: &QualityOptions) -> Vec<(String, Effort, Stages)> {
    let mut ways = vec![
        ("exhaustive".to_owned(), Effort::Exact, Stages::One),
        ("approximate".to_owned(), Effort::Approximate, Stages::One),
    ];
    for videos in &options.two_stage {
        let name = format!("two stages, {videos} videos first");
        ways.push((name, Effort::Approximate, Stages::Two { videos: *videos }));
    }
    ways
}

impl Sums {
    fn add(
        &mut self,
        found: &[Answer],
        exhaustive: &[Answer],
        right: &RightMoments,
        graded: &[GradedSpan],
        options: &QualityOptions,
    ) {
        let ranked: Vec<_> = found.iter().map(|answer| (&answer.video, answer.span)).collect();
        self.ndcg += ndcg_at(options.answers, options.iou, &ranked, graded, Judge::default());
        let first = found.first();
        self.first_right += usize::from(first.is_some_and(|answer| right.found_by(&answer.video, answer.span)));
        let same = |one: &&Answer| found.iter().any(|other| (&other.video, other.span) == (&one.video, one.span));
        self.same += exhaustive.iter().filter(same).count();
        self.wanted += exhaustive.len();
    }
}

fn judged<'a>(answers: &'a [Answer], right: &'a RightMoments) -> impl Iterator<Item = (f64, bool)> + 'a {
    answers.iter().map(|answer| (answer.probability, right.found_by(&answer.video, answer.span)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_that_keeps_seven_of_ten_refuses_what_lies_below_the_fourth() {
        let right: Vec<f64> = (1..=10).map(|n| f64::from(n) / 10.0).collect();
        assert_eq!(refused_keeping(0.7, right.clone(), &[0.1, 0.3, 0.4, 0.9]), 0.5, "three are lost, 0.4 is kept");
        assert_eq!(refused_keeping(1.0, right, &[0.05, 0.1]), 0.5);
        assert_eq!(refused_keeping(0.7, Vec::new(), &[0.1]), 0.0, "nothing to keep, nothing to say");
    }
}
