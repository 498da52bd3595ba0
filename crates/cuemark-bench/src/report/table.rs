//! The table of one place: every entry, every metric, with intervals, tests and published figures.

use serde::Serialize;

use super::entry::{Entry, Name, Place, usual_pairing};
use super::estimate::{Estimate, SIGNIFICANT, paired};
use crate::published::{Figure, Key, Published};

/// The table of one place. Rows in order of the headline metric, models first, then baselines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Where.
    pub place: Place,
    /// Queries of the split.
    pub queries: usize,
    /// Metrics, in order of their first appearance.
    pub metrics: Vec<String>,
    /// One row per entry.
    pub rows: Vec<Row>,
    /// For each metric, how the best entry compares with the next; absent with fewer than two comparable entries.
    pub contests: Vec<Option<Contest>>,
    /// How the metrics were computed.
    pub conventions: Vec<String>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Who.
    pub name: Name,
    /// Number of seeds.
    pub seeds: usize,
    /// Queries without an answer, at most over the seeds.
    pub missing: usize,
    /// Trainable parameters.
    pub parameters: Option<u64>,
    /// Milliseconds per query, averaged over the seeds.
    pub ms_per_query: Option<f64>,
    /// One cell per metric; nothing where it was not measured.
    pub cells: Vec<Option<Cell>>,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The mean over seeds with its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Standard deviation over seeds, of which there are at least two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// The highest of its column, and significantly higher than the next.
    pub best: bool,
    /// What papers print for the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedCell>,
}

/// What a paper prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCell {
    /// The digits as printed.
    pub printed: String,
    /// The same as a fraction of 1.
    pub fraction: f64,
    /// The paper's key.
    pub paper: &'static str,
    /// The table in it.
    pub table: String,
    /// The features that the paper names.
    pub features: String,
    /// Why the printed number cannot be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// The best entry of a column against the next one, on the same queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contest {
    /// The best.
    pub best: String,
    /// The next.
    pub next: String,
    /// By how much, with the paired interval.
    pub lead: Estimate,
    /// Two-sided p-value of the paired randomisation test.
    pub p_value: f64,
}

impl Table {
    pub(super) fn of(place: &Place, entries: &[Entry<'_>], published: &Published) -> Self {
        let mut metrics: Vec<String> = Vec::new();
        for run in entries.iter().flat_map(|entry| &entry.runs) {
            for name in run.metrics.keys() {
                if !metrics.contains(name) {
                    metrics.push(name.clone());
                }
            }
        }
        let mut rows: Vec<Row> = entries.iter().map(|entry| row(place, entry, &metrics, published)).collect();
        let pairing = usual_pairing(entries);
        let contests: Vec<Option<Contest>> = metrics
            .iter()
            .enumerate()
            .map(|(column, metric)| {
                let (contest, winner) = contest(entries, &rows, column, metric, pairing)?;
                let clear = contest.p_value < SIGNIFICANT && contest.lead.value > 0.0;
                if let Some(cell) = rows[winner].cells[column].as_mut().filter(|_| clear) {
                    cell.best = true;
                }
                Some(contest)
            })
            .collect();
        let headline = entries.first().and_then(|entry| entry.first().headline());
        let column = headline.and_then(|name| metrics.iter().position(|metric| metric == name)).unwrap_or(0);
        let value = |row: &Row| row.cells.get(column).and_then(Option::as_ref).map_or(-1.0, |cell| cell.estimate.value);
        let group = |row: &Row| row.name.kind == super::about::Answerer::Baseline;
        rows.sort_by(|a, b| group(a).cmp(&group(b)).then(value(b).total_cmp(&value(a))));
        let mut conventions: Vec<String> = Vec::new();
        for line in entries.iter().flat_map(|entry| &entry.runs).flat_map(|run| &run.conventions) {
            if !conventions.contains(line) {
                conventions.push(line.clone());
            }
        }
        let queries = entries.iter().map(|entry| entry.first().queries).max().unwrap_or(0);
        Self { place: place.clone(), queries, metrics, rows, contests, conventions }
    }

    /// The papers that its cells quote, in order of first appearance.
    pub fn sources(&self) -> Vec<&'static str> {
        let mut papers = Vec::new();
        for cell in self.rows.iter().flat_map(|row| &row.cells).flatten() {
            for printed in &cell.published {
                if !papers.contains(&printed.paper) {
                    papers.push(printed.paper);
                }
            }
        }
        papers
    }
}

fn row(place: &Place, entry: &Entry<'_>, metrics: &[String], published: &Published) -> Row {
    let cell = |metric: &String| {
        let estimate = entry.measured(metric)?;
        let published = printed(place, &entry.name, metric, published);
        Some(Cell { estimate, sd: entry.spread(metric), best: false, published })
    };
    let times: Vec<f64> = entry.runs.iter().filter_map(|run| run.about.ms_per_query).collect();
    Row {
        name: entry.name.clone(),
        seeds: entry.runs.len(),
        missing: entry.runs.iter().map(|run| run.missing).max().unwrap_or(0),
        parameters: entry.first().about.parameters,
        ms_per_query: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
        cells: metrics.iter().map(cell).collect(),
    }
}

/// What every paper prints for one cell; the features need not be ours, so each is named.
fn printed(place: &Place, name: &Name, metric: &str, published: &Published) -> Vec<PublishedCell> {
    let key = Key {
        dataset: Some(&place.dataset),
        split: Some(&place.split),
        model: Some(&name.model),
        variant: Some(&name.variant),
        metric: Some(metric),
        ..Key::default()
    };
    let own_protocol = |figure: &&Figure| place.protocol.is_empty() || figure.protocol == place.protocol;
    let found = published.find(&key).into_iter().filter(own_protocol).filter_map(|figure| {
        Some(PublishedCell {
            printed: figure.printed.clone()?,
            fraction: figure.fraction()?,
            paper: figure.paper.key,
            table: figure.table.clone(),
            features: figure.features.clone(),
            doubt: figure.doubt.clone(),
        })
    });
    found.collect()
}

/// The test of the best against the next in one column, and the best one's position.
fn contest(
    entries: &[Entry<'_>],
    rows: &[Row],
    column: usize,
    metric: &str,
    pairing: &str,
) -> Option<(Contest, usize)> {
    let mut order: Vec<(usize, f64)> =
        rows.iter().enumerate().filter_map(|(n, row)| Some((n, row.cells[column].as_ref()?.estimate.value))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let [(best, _), (next, _), ..] = order.as_slice() else { return None };
    let scores = |n: usize| Some(entries[n].scores(metric, pairing)).filter(|scores| !scores.is_empty());
    let (lead, p_value) = paired(scores(*next)?, scores(*best)?)?;
    let label = |n: usize| entries[n].name.label();
    Some((Contest { best: label(*best), next: label(*next), lead, p_value }, *best))
}
