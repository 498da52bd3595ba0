//! What first answers look like: whether they collapse onto a few spans, and how they miss.

use cuemark_core::{Span, Truth};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::evaluated::Evaluated;
use super::heat::{HeatMap, answered_spans, true_spans};

/// Two spans that overlap by this much are the same answer.
const SAME: f64 = 0.9;
/// The overlap below which an answer misses.
const HIT: f32 = 0.5;
/// A span that covers this share of another covers it.
const COVERED: f64 = 0.9;

/// Whether answers collapse onto a few spans, beside what the truth does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Collapse {
    /// As many equally used cells of start × end (in twentieths) would be as spread out as the answers.
    pub effective_cells: f64,
    /// The same of the truth.
    pub true_effective_cells: f64,
    /// Share of answers in the ten fullest cells.
    pub fullest_ten: f64,
    /// The same of the truth.
    pub true_fullest_ten: f64,
    /// Share of neighbouring queries about one video that get the same answer (IoU ≥ 0.9).
    pub same_in_video: Option<f64>,
    /// Share of them whose truth is the same.
    pub true_same_in_video: Option<f64>,
    /// How much of the map of answers and of the map of truth is common, 0..1.
    pub map_overlap: f64,
}

impl Collapse {
    /// `None` without answers that can be placed.
    pub(super) fn of(run: &Evaluated, truths: &[Truth]) -> Option<Self> {
        let answered = HeatMap::of("", answered_spans(run, truths));
        let right = HeatMap::of("", true_spans(truths));
        if answered.spans == 0 || right.spans == 0 {
            return None;
        }
        let answer = |n: usize| {
            let (start, end) = run.first.start.get(n).zip(run.first.end.get(n))?;
            Span::new(start, end).ok()
        };
        let true_span = |n: usize| truths.get(n)?.right().next().map(|moment| moment.span);
        Some(Self {
            effective_cells: answered.effective_cells(),
            true_effective_cells: right.effective_cells(),
            fullest_ten: answered.fullest(10),
            true_fullest_ten: right.fullest(10),
            same_in_video: same_in_video(truths, answer),
            true_same_in_video: same_in_video(truths, true_span),
            map_overlap: answered.overlap(&right),
        })
    }
}

/// Share of neighbouring queries about one video whose spans are the same; `None` when no video has two.
fn same_in_video(truths: &[Truth], span_of: impl Fn(usize) -> Option<Span>) -> Option<f64> {
    let mut last: FxHashMap<&str, usize> = FxHashMap::default();
    let (mut pairs, mut same) = (0usize, 0usize);
    for (n, truth) in truths.iter().enumerate() {
        let Some(video) = &truth.video else { continue };
        let before = last.insert(video.id.as_str(), n);
        if let Some((a, b)) = before.and_then(&span_of).zip(span_of(n)) {
            pairs += 1;
            same += usize::from(a.iou(b) >= SAME);
        }
    }
    (pairs > 0).then(|| same as f64 / pairs as f64)
}

/// How first answers miss: shares of all queries, which add up to what R@1,IoU=0.5 leaves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Misses {
    /// No answer at all, or one in another video.
    pub none: f64,
    /// It lies elsewhere: no overlap.
    pub elsewhere: f64,
    /// It covers the moment and far more.
    pub too_long: f64,
    /// It lies inside the moment and is too short.
    pub too_short: f64,
    /// It overlaps the moment in part.
    pub shifted: f64,
}

impl Misses {
    pub(super) fn of(run: &Evaluated, truths: &[Truth]) -> Self {
        let mut misses = Self::default();
        let each = 1.0 / truths.len().max(1) as f64;
        for (n, truth) in truths.iter().enumerate() {
            if run.first.iou.0.get(n).is_some_and(|iou| *iou >= HIT) {
                continue;
            }
            let place = run.first.start.get(n).zip(run.first.end.get(n));
            let Some(answer) = place.and_then(|(start, end)| Span::new(start, end).ok()) else {
                misses.none += each;
                continue;
            };
            let nearest =
                truth.right().map(|moment| moment.span).max_by(|a, b| answer.iou(*a).total_cmp(&answer.iou(*b)));
            let common =
                nearest.map_or(0.0, |moment| answer.end().min(moment.end()) - answer.start().max(moment.start()));
            let covers = |span: Option<Span>| span.is_some_and(|span| common >= COVERED * span.len());
            let kind = if common <= 0.0 {
                &mut misses.elsewhere
            } else if covers(nearest) {
                &mut misses.too_long
            } else if covers(Some(answer)) {
                &mut misses.too_short
            } else {
                &mut misses.shifted
            };
            *kind += each;
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::Progress;

    use super::*;
    use crate::report::testing::{answers, truths};
    use crate::report::{About, Measure};

    fn run(truths: &[Truth], spans: impl Fn(usize) -> Vec<(f64, f64)>) -> Evaluated {
        Measure::default().run(About::default(), truths, &answers(truths, spans), &Progress::new()).unwrap()
    }

    #[test]
    fn every_kind_of_miss_is_told_apart() {
        // Moments: 10-20, 11-21, 12-22, 13-23, 14-24 s.
        let truths = truths(5);
        let spans = [vec![(30.0, 40.0)], vec![(0.0, 40.0)], vec![(15.0, 17.0)], vec![(19.0, 29.0)], vec![(14.0, 24.0)]];
        let misses = Misses::of(&run(&truths, |n| spans[n].clone()), &truths);
        let each = 0.2;
        assert_eq!(misses, Misses { none: 0.0, elsewhere: each, too_long: each, too_short: each, shifted: each });
        let silent = Misses::of(&run(&truths, |_| vec![]), &truths);
        assert!((silent.none - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_answer_for_everything_is_a_collapse() {
        let truths = truths(40);
        let collapsed = Collapse::of(&run(&truths, |_| vec![(0.0, 40.0)]), &truths).unwrap();
        assert!((collapsed.effective_cells - 1.0).abs() < 1e-9);
        assert_eq!((collapsed.same_in_video, collapsed.true_same_in_video), (Some(1.0), Some(0.0)));
        assert_eq!(collapsed.map_overlap, 0.0, "no moment is the whole video");
        let right =
            Collapse::of(&run(&truths, |n| vec![(10.0 + (n % 5) as f64, 20.0 + (n % 5) as f64)]), &truths).unwrap();
        assert!((right.map_overlap - 1.0).abs() < 1e-9);
    }
}
