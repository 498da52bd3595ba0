//! One place in full: its table and the figures below it.

use cuemark_core::Truth;
use serde::Serialize;

use super::breakdown::{Breakdown, Division};
use super::calibration::CalibrationChart;
use super::curves::Curve;
use super::entry::{Entry, Place, usual_pairing};
use super::examples::{Example, examples};
use super::heat::{HeatMap, answered_spans, true_spans};
use super::table::Table;
use crate::published::Published;

/// Models and files that figures show, the best by the headline metric.
const MODELS: usize = 6;
/// Baselines that figures show.
const BASELINES: usize = 2;

/// One place in full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// Every entry.
    pub table: Table,
    /// The metric of the breakdowns.
    pub metric: String,
    /// Entries that figures leave out, for being too many.
    pub left_out: usize,
    /// R@1 and dR@1 over the overlap.
    pub curves: Vec<Curve>,
    /// Where the truth lies; absent when it or durations are not known.
    pub truth_map: Option<HeatMap>,
    /// Where first answers lie.
    pub maps: Vec<HeatMap>,
    /// The headline metric by class of query.
    pub breakdowns: Vec<Breakdown>,
    /// How sure each was, against how often it was right.
    pub calibrations: Vec<CalibrationChart>,
    /// Queries to look at.
    pub examples: Vec<Example>,
}

impl Board {
    pub(super) fn of(
        place: &Place,
        entries: &[Entry<'_>],
        truths: Option<&[Truth]>,
        divisions: &[Division],
        published: &Published,
    ) -> Self {
        let table = Table::of(place, entries, published);
        let metric = entries.first().and_then(|entry| entry.first().headline()).unwrap_or_default().to_owned();
        let shown = shown(entries, &table);
        let mut board = Self {
            left_out: entries.len() - shown.len(),
            table,
            curves: Vec::new(),
            truth_map: None,
            maps: Vec::new(),
            breakdowns: Vec::new(),
            calibrations: shown
                .iter()
                .filter_map(|entry| CalibrationChart::of(entry.name.label(), entry.first()))
                .collect(),
            examples: Vec::new(),
            metric,
        };
        if let Some(truths) = truths {
            board.draw(&shown, truths, divisions);
        }
        board
    }

    /// Fills in what needs the truth.
    fn draw(&mut self, shown: &[Entry<'_>], truths: &[Truth], divisions: &[Division]) {
        self.curves = shown.iter().filter_map(|entry| Curve::of(entry, truths)).collect();
        let right = HeatMap::of("truth", true_spans(truths));
        self.truth_map = (right.spans > 0).then_some(right);
        let map = |entry: &Entry<'_>| {
            let fits = entry.runs.iter().filter(|run| run.queries == truths.len());
            HeatMap::of(entry.name.label(), fits.flat_map(|run| answered_spans(run, truths)))
        };
        self.maps = shown.iter().map(map).filter(|map| map.spans > 0).collect();
        let pairing = usual_pairing(shown);
        let scores: Vec<Vec<f64>> = shown.iter().map(|entry| entry.scores(&self.metric, pairing)).collect();
        self.breakdowns = divisions.iter().map(|division| division.breakdown(shown, &scores)).collect();
        self.examples = examples(shown, truths);
    }
}

/// The entries that figures show, in the table's order.
fn shown<'a>(entries: &[Entry<'a>], table: &Table) -> Vec<Entry<'a>> {
    let (mut models, mut baselines) = (0, 0);
    let mut shown = Vec::new();
    for row in &table.rows {
        let Some(entry) = entries.iter().find(|entry| entry.name == row.name) else { continue };
        let (count, most) = if entry.is_baseline() { (&mut baselines, BASELINES) } else { (&mut models, MODELS) };
        if *count < most {
            *count += 1;
            shown.push(entry.clone());
        }
    }
    shown
}
