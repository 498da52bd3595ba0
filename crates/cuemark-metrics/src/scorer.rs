//! Scoring each query in some metrics.

use cuemark_core::{ChunkRange, Progress, Span, Truth};
use rayon::prelude::*;

use crate::case::{Candidate, Case, Looks, Met, Until};
use crate::map::Overlaps;
use crate::matching::TaskLists;
use crate::name::MAP_THRESHOLDS;
use crate::ndcg::{Graded, Matched};
use crate::{
    EvalError, GradedSpan, Group, HighlightLevel, Judge, LengthRange, Metric, MetricName, Missing, Plan, Stage,
    WhichHit, average_rank, chunk_miou, clips_ap, discounted_recall_at, highlight_ap, highlight_hit, refusal_precision,
    refusal_recall, top_clips_ap,
};

/// The scores of some metrics that share a stage and a task.
pub(crate) struct Scorer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) stage: &'a Stage,
    /// Places of the metrics in the plan.
    pub(crate) positions: &'a [usize],
    pub(crate) progress: &'a Progress,
}

impl Scorer<'_> {
    /// One vector of scores per metric.
    pub(crate) fn fill(&self, truths: &[Truth], answered: &TaskLists<'_>) -> Result<Vec<Vec<f64>>, EvalError> {
        let width = self.positions.len();
        let looks = self.looks();
        let mut rows = vec![f64::NAN; truths.len() * width];
        rows.par_chunks_mut(width).zip(truths.par_iter().zip(&answered.places)).with_min_len(64).try_for_each(
            |(row, (truth, place))| {
                self.progress.advance(1)?;
                if place.is_none() && self.plan.missing == Missing::Skip {
                    return Ok(());
                }
                let answer = place.map(|place| (answered.lists, place));
                let case = Case::new(truth, answer, &self.stage.steps, looks)?;
                self.score_row(&case, row)
            },
        )?;
        Ok((0..width).map(|metric| rows.iter().skip(metric).step_by(width).copied().collect()).collect())
    }

    fn score_row(&self, case: &Case<'_>, row: &mut [f64]) -> Result<(), EvalError> {
        let mut shared =
            Shared { scorer: self, case, any: vec![], own: vec![], precision: vec![], graded: None, matched: vec![] };
        for (score, position) in row.iter_mut().zip(self.positions) {
            let MetricName { metric, group } = &self.plan.metrics[*position];
            let range = match group {
                Some(Group::Moments(range)) => Some(*range),
                Some(Group::Queries(grouping, class)) => {
                    if grouping.class_of(case.truth).as_ref() != Some(class) {
                        continue;
                    }
                    None
                }
                None => None,
            };
            if let Some(value) = shared.score(metric, range)? {
                *score = value;
            }
        }
        Ok(())
    }

    /// Which predictions the metrics look at: those that count hits need no other video than the right ones.
    fn looks(&self) -> Looks {
        let counts_hits = |position: &usize| {
            matches!(
                self.plan.metrics[*position].metric,
                Metric::Recall { .. }
                    | Metric::Vcmr { .. }
                    | Metric::Svmr { .. }
                    | Metric::Mvmr { .. }
                    | Metric::Vr { .. }
                    | Metric::MeanIou
            )
        };
        if self.positions.iter().all(counts_hits) { Looks::AtRightVideos } else { Looks::Everywhere }
    }

    /// How far down a list any of the metrics looks for hits.
    fn until(&self) -> Until {
        let mut until = Until { depth: 1, enough: 0.0 };
        for position in self.positions {
            if let Metric::Recall { n, m } | Metric::Vcmr { n, m } | Metric::Svmr { n, m } | Metric::Mvmr { n, m } =
                self.plan.metrics[*position].metric
            {
                until = Until { depth: until.depth.max(n), enough: until.enough.max(m) };
            }
        }
        until
    }
}

/// What several metrics of one query share, computed when the first of them asks.
struct Shared<'s, 'a> {
    scorer: &'s Scorer<'s>,
    case: &'s Case<'a>,
    /// Overlaps of the list, by range of moment length.
    any: Vec<(Option<LengthRange>, Vec<Met>)>,
    /// Overlaps of the list without other videos.
    own: Vec<(Option<LengthRange>, Vec<Met>)>,
    precision: Vec<(Option<LengthRange>, Overlaps)>,
    graded: Option<Graded<'a>>,
    /// Graded lists, by threshold.
    matched: Vec<(f64, Matched)>,
}

impl<'a> Shared<'_, 'a> {
    /// The score of this query; `None` when it does not count.
    fn score(&mut self, metric: &Metric, range: Option<LengthRange>) -> Result<Option<f64>, EvalError> {
        let case = self.case;
        let judge = self.scorer.stage.judge;
        let nothing_right = case.right(range).next().is_none();
        let share = |hit: bool| Ok(Some(f64::from(u8::from(hit))));
        match *metric {
            Metric::HighlightMap { level } => self.highlight(metric, |saliency, truth, duration| {
                highlight_ap(level.unwrap_or(HighlightLevel::VeryGood), saliency, truth, duration)
            }),
            Metric::HighlightHit { level } => self.highlight(metric, |saliency, truth, duration| {
                let level = level.unwrap_or(HighlightLevel::VeryGood);
                Some(f64::from(u8::from(highlight_hit(level, saliency, truth, duration))))
            }),
            Metric::RefusalPrecision => Ok(refusal_precision(case.answerable(), case.ranked.len())),
            Metric::RefusalRecall => Ok(refusal_recall(case.answerable(), case.ranked.len())),
            Metric::ClipsAp { none } => Ok(self.clips(|saliency, truth| clips_ap(none, saliency, truth))),
            Metric::TopClipsAp { n } => Ok(self.clips(|saliency, truth| top_clips_ap(n, saliency, truth))),
            Metric::Ndcg { .. } if case.targets.is_empty() => Ok(None),
            Metric::Ndcg { k, m } => Ok(Some(self.matched(m).ndcg(k))),
            _ if nothing_right => Ok(None),
            Metric::Recall { n, m } | Metric::Vcmr { n, m } | Metric::Mvmr { n, m } => {
                share(is_hit(n, m, self.any(range), judge))
            }
            Metric::Svmr { n, m } => share(is_hit(n, m, self.own(range), judge)),
            Metric::Vr { n } => {
                let right = |candidate: &Candidate<'a>| case.right(None).any(|target| case.meets(candidate, target));
                share(case.ranked.iter().take_while(|candidate| candidate.rank < n).any(right))
            }
            Metric::MeanIou => Ok(Some(top_overlap(self.any(range)).max(0.0))),
            Metric::DiscountedRecall { n, m } => {
                let duration = case.needs_duration(&metric.to_string())?;
                let truth: Vec<Span> = case.right(range).map(|target| target.span).collect();
                let video = case.right(range).next().map(|target| target.video);
                let ranked: Vec<Span> = case
                    .ranked
                    .iter()
                    .take(n)
                    .map(|candidate| if Some(candidate.video) == video { candidate.span } else { Span::whole(0.0) })
                    .collect();
                Ok(Some(discounted_recall_at(n, m, &ranked, &truth, duration, WhichHit::Best, judge)))
            }
            Metric::MeanAp { .. } if case.ranked.is_empty() && self.scorer.plan.missing == Missing::Refuse => Ok(None),
            Metric::MeanAp { m } => {
                let overlaps = self.precision(range);
                Ok(Some(match m {
                    Some(m) => overlaps.average_precision(m),
                    None => {
                        let all = MAP_THRESHOLDS.map(|m| overlaps.average_precision(m));
                        all.iter().sum::<f64>() / all.len() as f64
                    }
                }))
            }
            Metric::TargetRecall { n, m } => Ok(Some(self.precision(range).target_recall(n, m))),
            Metric::DidemoRank { n } => {
                let (ranked, times) = self.chunks();
                Ok(average_rank(&ranked, &times).map(|rank| f64::from(u8::from(rank <= n as f64))))
            }
            Metric::DidemoMiou => {
                let (ranked, times) = self.chunks();
                Ok(chunk_miou(&ranked, &times))
            }
        }
    }

    fn highlight(
        &self,
        metric: &Metric,
        score: impl FnOnce(&[f64], &cuemark_core::Highlights, f64) -> Option<f64>,
    ) -> Result<Option<f64>, EvalError> {
        let Some(truth) = &self.case.truth.highlights else { return Ok(None) };
        let duration = self.case.needs_duration(&metric.to_string())?;
        Ok(score(self.case.saliency.unwrap_or_default(), truth, duration))
    }

    fn clips(&self, score: impl FnOnce(&[f64], &cuemark_core::Highlights) -> Option<f64>) -> Option<f64> {
        score(self.case.saliency.unwrap_or_default(), self.case.truth.highlights.as_ref()?)
    }

    fn any(&mut self, range: Option<LengthRange>) -> &[Met] {
        let (case, scorer) = (self.case, self.scorer);
        cached(&mut self.any, range, || case.overlaps(scorer.until(), range, scorer.stage.judge)).as_slice()
    }

    fn own(&mut self, range: Option<LengthRange>) -> &[Met] {
        let (case, scorer) = (self.case, self.scorer);
        cached(&mut self.own, range, || case.overlaps_inside(scorer.until(), range, scorer.stage.judge)).as_slice()
    }

    fn precision(&mut self, range: Option<LengthRange>) -> &Overlaps {
        let case = self.case;
        cached(&mut self.precision, range, || {
            let ranked: Vec<Span> = case.ranked.iter().map(|candidate| candidate.span).collect();
            let truth: Vec<Span> = case.right(range).map(|target| target.span).collect();
            Overlaps::new(&ranked, &truth)
        })
    }

    fn matched(&mut self, m: f64) -> &Matched {
        let (case, judge) = (self.case, self.scorer.stage.judge);
        let graded = self.graded.get_or_insert_with(|| {
            let moments = case.targets.iter().map(|target| GradedSpan {
                video: target.video,
                span: target.span,
                relevance: target.relevance,
            });
            Graded::new(case.ranked.iter().map(|candidate| (candidate.video, candidate.span)), moments)
        });
        cached(&mut self.matched, m, || graded.matched(m, judge))
    }

    fn chunks(&self) -> (Vec<ChunkRange>, Vec<ChunkRange>) {
        let ranked = self.case.ranked.iter().filter_map(|candidate| ChunkRange::from_span(candidate.span));
        let times = self.case.right(None).filter_map(|target| ChunkRange::from_span(target.span));
        (ranked.collect(), times.collect())
    }
}

/// Whether one of the first `k` predictions counts at threshold `m`.
fn is_hit(k: usize, m: f64, met: &[Met], judge: Judge) -> bool {
    met.iter().take_while(|met| met.rank < k).any(|met| judge.passes(met.overlap, m))
}

/// The overlap of the first prediction; below every overlap where it meets nothing.
pub(crate) fn top_overlap(met: &[Met]) -> f64 {
    met.first().filter(|met| met.rank == 0).map_or(-1.0, |met| met.overlap)
}

/// The value kept under `key`, made the first time.
fn cached<K: PartialEq, V>(cache: &mut Vec<(K, V)>, key: K, make: impl FnOnce() -> V) -> &V {
    let found = cache.iter().position(|(known, _)| *known == key);
    let at = found.unwrap_or_else(|| {
        cache.push((key, make()));
        cache.len() - 1
    });
    &cache[at].1
}
