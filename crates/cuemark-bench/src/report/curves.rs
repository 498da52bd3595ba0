//! Recall and discounted recall of first answers over the overlap that makes a hit.

use cuemark_core::{Span, Truth};
use serde::Serialize;

use super::entry::Entry;

/// Overlaps 0.05, 0.1 … 0.95.
pub(super) fn thresholds() -> Vec<f64> {
    (1..20).map(|n| f64::from(n) * 0.05).collect()
}

/// R@1 and dR@1 over the overlap, averaged over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Whose.
    pub label: String,
    /// R@1 at each threshold.
    pub recall: Vec<f64>,
    /// dR@1 at each threshold; empty where a duration is not known.
    pub discounted: Vec<f64>,
}

impl Curve {
    /// `None` when the runs were scored on other queries than `truths`.
    pub(super) fn of(entry: &Entry<'_>, truths: &[Truth]) -> Option<Self> {
        let thresholds = thresholds();
        let timed = truths.iter().all(|truth| truth.duration().is_some_and(|duration| duration > 0.0));
        let runs: Vec<_> = entry.runs.iter().filter(|run| run.queries == truths.len()).collect();
        let weight = 1.0 / (runs.len() * truths.len()).max(1) as f64;
        let mut curve = Self {
            label: entry.name.label(),
            recall: vec![0.0; thresholds.len()],
            discounted: vec![0.0; if timed { thresholds.len() } else { 0 }],
        };
        for run in &runs {
            for (n, truth) in truths.iter().enumerate() {
                // Stored overlaps are rounded as 32-bit numbers, so thresholds are too.
                let iou = run.first.iou.0[n];
                for (slot, threshold) in thresholds.iter().enumerate() {
                    curve.recall[slot] += weight * f64::from(u8::from(iou >= *threshold as f32));
                }
                if timed && iou > 0.0 {
                    let place = run.first.start.get(n).zip(run.first.end.get(n));
                    let Some(answer) = place.and_then(|(start, end)| Span::new(start, end).ok()) else { continue };
                    for (slot, credit) in credits(answer, truth, &thresholds).into_iter().enumerate() {
                        curve.discounted[slot] += weight * credit;
                    }
                }
            }
        }
        (!runs.is_empty() && !truths.is_empty()).then_some(curve)
    }
}

/// The discounted credit of an answer at each threshold; the best of several moments that it hits.
fn credits(answer: Span, truth: &Truth, thresholds: &[f64]) -> Vec<f64> {
    let duration = truth.duration().unwrap_or(1.0);
    let close = |a: f64, b: f64| (1.0 - ((a - b) / duration).abs()).max(0.0);
    let moments: Vec<(f64, f64)> = truth
        .right()
        .map(|moment| {
            let credit = close(answer.start(), moment.span.start()) * close(answer.end(), moment.span.end());
            // Starts and ends are stored to four decimals; a hit at the threshold stays one.
            (answer.iou(moment.span) + 1e-5, credit)
        })
        .collect();
    let best = |m: &f64| moments.iter().filter(|(iou, _)| iou >= m).map(|(_, credit)| *credit).fold(0.0, f64::max);
    thresholds.iter().map(best).collect()
}
