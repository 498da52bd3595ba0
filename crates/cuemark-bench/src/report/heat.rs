//! Where answers and truth lie: shares of moments in cells of start × end.

use cuemark_core::{NormSpan, Truth};
use serde::Serialize;

use super::evaluated::Evaluated;

/// Cells along each side.
pub(super) const SIDE: usize = 20;

/// Shares of spans by start (column) and end (row), in twentieths of the video. Sums to 1 unless it is empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// What it shows.
    pub title: String,
    /// Spans that were counted.
    pub spans: usize,
    /// Row after row from the earliest end: `share[end * 20 + start]`.
    #[serde(skip)]
    pub share: Vec<f64>,
}

impl HeatMap {
    /// Counts spans given in fractions of their video; what lies outside is clipped to it.
    pub(super) fn of(title: impl Into<String>, spans: impl Iterator<Item = NormSpan>) -> Self {
        let mut share = vec![0.0; SIDE * SIDE];
        let mut count = 0;
        for span in spans {
            share[cell_of(span)] += 1.0;
            count += 1;
        }
        for cell in &mut share {
            *cell /= f64::from(count).max(1.0);
        }
        Self { title: title.into(), spans: count as usize, share }
    }

    /// Over all cells, `Σ min(a, b)`: 1 when both maps are the same, 0 when they share no cell.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        self.share.iter().zip(&other.share).map(|(a, b)| a.min(*b)).sum()
    }

    /// `exp` of the entropy: as many equally used cells would be as spread out.
    pub(super) fn effective_cells(&self) -> f64 {
        let entropy: f64 = self.share.iter().filter(|share| **share > 0.0).map(|share| -share * share.ln()).sum();
        entropy.exp()
    }

    /// The share that the `n` fullest cells hold.
    pub(super) fn fullest(&self, n: usize) -> f64 {
        let mut shares = self.share.clone();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares.iter().take(n).sum()
    }
}

/// The cell of a span; a bound of exactly 1 belongs to the last.
fn cell_of(span: NormSpan) -> usize {
    let span = span.clipped();
    let place = |share: f64| ((share * SIDE as f64) as usize).min(SIDE - 1);
    place(span.end()) * SIDE + place(span.start())
}

/// The right moments of `truths`, in fractions of their video; those without a duration are left out.
pub(super) fn true_spans(truths: &[Truth]) -> impl Iterator<Item = NormSpan> {
    truths.iter().flat_map(|truth| {
        let duration = truth.duration();
        truth.right().filter_map(move |moment| NormSpan::of(moment.span, duration?))
    })
}

/// The first answers of a run, in fractions of their video.
pub(super) fn answered_spans<'a>(run: &'a Evaluated, truths: &'a [Truth]) -> impl Iterator<Item = NormSpan> + 'a {
    truths.iter().enumerate().filter_map(|(n, truth)| {
        let duration = truth.duration().filter(|duration| *duration > 0.0)?;
        NormSpan::new(run.first.start.get(n)? / duration, run.first.end.get(n)? / duration)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: f64, end: f64) -> NormSpan {
        NormSpan::new(start, end).unwrap()
    }

    #[test]
    fn spans_fall_into_twentieths_and_the_last_bound_into_the_last_cell() {
        let map = HeatMap::of("", [span(0.0, 1.0), span(0.04, 0.99), span(0.5, 0.56), span(0.9, 1.7)].into_iter());
        assert_eq!(map.share[19 * SIDE], 0.5);
        assert_eq!(map.share[11 * SIDE + 10], 0.25);
        assert_eq!(map.share[19 * SIDE + 18], 0.25, "past the end is clipped");
    }

    #[test]
    fn a_map_with_one_cell_is_one_cell_wide_and_even_ones_count_in_full() {
        let one = HeatMap::of("", std::iter::repeat_n(span(0.0, 1.0), 7));
        assert!((one.effective_cells() - 1.0).abs() < 1e-12);
        let four = HeatMap::of("", (0..4).map(|n| span(f64::from(n) * 0.2, 0.9)));
        assert!((four.effective_cells() - 4.0).abs() < 1e-9);
        assert_eq!((one.fullest(1), four.fullest(1)), (1.0, 0.25));
        assert_eq!((one.overlap(&one), one.overlap(&HeatMap::of("", std::iter::empty()))), (1.0, 0.0));
    }
}
