//! Reports: what a set of evaluated runs shows, as a page, as text, as tables for papers and as data.
//!
//! A run is scored once ([`Measure`]), with intervals, and the result is stored beside its predictions
//! ([`Evaluated::store`]). A [`Report`] is put together from such files ([`read_runs`]) or from predictions that were
//! just scored, and written by [`Report::write`].

mod about;
mod behaviour;
mod blind;
mod board;
mod breakdown;
mod calibration;
mod clip_scores;
mod curves;
mod data_section;
mod digest;
mod entry;
mod estimate;
mod evaluated;
mod examples;
mod films;
mod heat;
mod measure;
mod per_query;
mod store;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod training_log;
mod trust;
mod write;

pub use about::{About, Answerer};
pub use behaviour::{Collapse, Misses};
pub use blind::score_baselines;
pub use board::Board;
pub use breakdown::{Breakdown, Classes, WeakSpot};
pub use calibration::{Bin, CalibrationChart};
pub use clip_scores::ClipScores;
pub use cuemark_text::variants::QueryText;
pub use curves::Curve;
pub use data_section::{DataSection, Lengths};
pub use entry::{Name, Place};
pub use estimate::Estimate;
pub use evaluated::{Evaluated, FORMAT_VERSION, FirstAnswers, Measured, Resampling};
pub use examples::{Example, ExampleAnswer};
pub use films::Films;
pub use heat::HeatMap;
pub use measure::{Measure, usual_plan};
pub use per_query::PerQuery;
pub use store::{Runs, is_evaluated, read_runs, store_truth};
pub use table::{Cell, Contest, PublishedCell, Row, Table};
pub use training_log::TrainingLog;
pub use trust::{Check, TrustCard, TrustVerdict};
pub use write::FILES;

use cuemark_train::Among;
use indexmap::IndexMap;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{BenchError, Published, Result};
use breakdown::Division;
use entry::{Entry, by_place, usual_pairing};
use trust::Evidence;

/// What a report shows beside its runs.
#[derive(Debug, Default)]
pub struct ReportOptions {
    /// The title. Default: `Moment retrieval report`
    pub title: String,
    /// Remarks that stand at the top: failed cells, the machine.
    pub notes: Vec<String>,
    /// Sections about datasets.
    pub data: Vec<DataSection>,
    /// Files of the videos: failures come first then, and can be watched in the page.
    pub films: Films,
    /// Whether tables for papers and wikis show intervals.
    pub intervals: Intervals,
}

/// Whether tables for papers and wikis show intervals; the page and the data always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intervals {
    /// They do. Default.
    #[default]
    Shown,
    /// They do not.
    Hidden,
}

/// What a set of evaluated runs shows.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The title.
    pub title: String,
    /// The version of cuemark that made it.
    pub cuemark: &'static str,
    /// Remarks that stand at the top.
    pub notes: Vec<String>,
    /// One per dataset, protocol, split and way of searching.
    pub boards: Vec<Board>,
    /// One per entry, dataset and protocol, in the order of the boards.
    pub cards: Vec<TrustCard>,
    /// Sections about datasets.
    pub data: Vec<DataSection>,
    /// What trainings logged.
    pub training: Vec<TrainingLog>,
    /// Whether tables for papers and wikis show intervals.
    #[serde(skip)]
    pub intervals: Intervals,
}

/// Splits in the order in which a card's score is taken from them.
const FROM: [&str; 6] = ["test-iid", "test", "val_2", "test-ood", "val", "val_1"];

impl Report {
    /// Puts a report together.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub fn of(runs: Runs, options: ReportOptions) -> Result<Self> {
        if runs.evaluated.is_empty() && options.data.is_empty() {
            return Err(BenchError::Nothing { problem: "no run and no dataset was given" });
        }
        let published = Published::load()?;
        let places = by_place(runs.evaluated.iter().filter(|run| run.about.is_plain()));
        let divisions = divisions_by_truth(&runs, &places);
        let known = |entries: &[Entry<'_>]| {
            let pairing = usual_pairing(entries);
            let digest = &entries.iter().flat_map(|entry| &entry.runs).find(|run| run.pairing == pairing)?.truth;
            Some((runs.truths.get(digest)?.as_slice(), divisions.get(digest)?.as_slice()))
        };
        let mut boards: Vec<Board> = places
            .iter()
            .map(|(place, entries)| {
                let (truths, divisions) = known(entries).unzip();
                Board::of(place, entries, truths, divisions.unwrap_or_default(), &published)
            })
            .collect();
        for board in &mut boards {
            examples::with_films(&mut board.examples, &options.films);
        }
        let mut cards = Vec::new();
        for (place, entries) in chosen_places(&places) {
            let same = |run: &&Evaluated| {
                run.about.dataset == place.dataset
                    && run.about.protocol == place.protocol
                    && run.about.among == place.among
            };
            let (truths, divisions) = known(entries).unzip();
            let evidence = Evidence {
                evaluated: runs.evaluated.iter().filter(same).collect(),
                place,
                entries,
                truths,
                divisions: divisions.unwrap_or_default(),
            };
            let mut found: Vec<TrustCard> = entries.par_iter().filter_map(|entry| evidence.card(entry)).collect();
            let baseline = |card: &TrustCard| card.name.kind == Answerer::Baseline;
            found.sort_by(|a, b| baseline(a).cmp(&baseline(b)).then(b.score.value.total_cmp(&a.score.value)));
            cards.extend(found);
        }
        let title = if options.title.is_empty() { "Moment retrieval report".to_owned() } else { options.title };
        Ok(Self {
            title: match partial(&boards) {
                Some(partial) => format!("{title} ({partial})"),
                None => title,
            },
            cuemark: env!("CARGO_PKG_VERSION"),
            notes: options.notes,
            boards,
            cards,
            data: options.data,
            training: runs.logs,
            intervals: options.intervals,
        })
    }

    /// Every board's table as papers want it.
    pub fn sheets(&self) -> Vec<cuemark_metrics::Sheet> {
        self.boards.iter().map(|board| write::sheet(&board.table, self.intervals)).collect()
    }

    /// What scripts want to know: every table's figures and every card's checks, fractions of 1.
    pub fn summary(&self) -> Value {
        let metrics = |row: &Row, table: &Table| -> IndexMap<String, f64> {
            let cells = table.metrics.iter().zip(&row.cells);
            cells.filter_map(|(name, cell)| Some((name.clone(), cell.as_ref()?.estimate.value))).collect()
        };
        let boards: Vec<Value> = self
            .boards
            .iter()
            .map(|board| {
                let table = &board.table;
                let row = |row: &Row| json!({ "name": row.name, "seeds": row.seeds, "metrics": metrics(row, table) });
                json!({
                    "place": table.place,
                    "queries": table.queries,
                    "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
                    "contests": table.metrics.iter().zip(&table.contests).collect::<IndexMap<_, _>>(),
                })
            })
            .collect();
        let cards = self.cards.iter().map(|card| {
            json!({
                "name": card.name, "place": card.place, "metric": card.metric, "score": card.score,
                "seeds": card.seeds, "checks": card.checks, "weak_spots": card.weak_spots,
            })
        });
        let data =
            self.data.iter().map(|data| json!({ "dataset": data.dataset, "notes": data.notes, "audit": data.audit }));
        json!({
            "title": self.title,
            "notes": self.notes,
            "boards": boards,
            "cards": cards.collect::<Vec<_>>(),
            "datasets": data.collect::<Vec<_>>(),
        })
    }
}

/// What the title says when a method leaves queries unanswered: its numbers are of a partial set.
fn partial(boards: &[Board]) -> Option<String> {
    let tables = boards.iter().map(|board| &board.table);
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let (table, row) = rows.max_by_key(|(_, row)| row.missing).filter(|(_, row)| row.missing > 0)?;
    let thousands = cuemark_core::text::thousands;
    Some(format!("partial: {} of {} queries unanswered", thousands(row.missing), thousands(table.queries)))
}

/// How the queries of each truth divide; made once for all boards that share it.
fn divisions_by_truth(runs: &Runs, places: &IndexMap<Place, Vec<Entry<'_>>>) -> IndexMap<String, Vec<Division>> {
    let used =
        |digest: &&String| places.values().flatten().flat_map(|entry| &entry.runs).any(|run| run.truth == **digest);
    runs.truths
        .iter()
        .filter(|(digest, _)| used(digest))
        .map(|(digest, truths)| (digest.clone(), breakdown::divisions(truths)))
        .collect()
}

/// For each dataset, protocol and way of searching, the place that cards are about.
fn chosen_places<'p, 'a>(
    places: &'p IndexMap<Place, Vec<Entry<'a>>>,
) -> impl Iterator<Item = (&'p Place, &'p [Entry<'a>])> {
    let rank = |split: &str| FROM.iter().position(|from| *from == split).unwrap_or(FROM.len());
    let mut chosen: IndexMap<(&str, &str, Among), &'p Place> = IndexMap::new();
    for place in places.keys() {
        let best = chosen.entry((&place.dataset, &place.protocol, place.among)).or_insert(place);
        if rank(&place.split) < rank(&best.split) {
            *best = place;
        }
    }
    chosen.into_values().filter_map(|place| Some((place, places.get(place)?.as_slice())))
}
