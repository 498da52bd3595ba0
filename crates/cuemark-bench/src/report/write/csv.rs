//! The tables as CSV, one line per number, for spreadsheets and scripts.

use super::super::Report;
use super::super::table::{Cell, Row, Table};
use super::text::harmless;

const HEADER: [&str; 19] = [
    "dataset",
    "protocol",
    "split",
    "among",
    "kind",
    "model",
    "variant",
    "features",
    "seeds",
    "queries",
    "missing",
    "parameters",
    "ms_per_query",
    "metric",
    "value",
    "low",
    "high",
    "sd",
    "best",
];

/// Fractions of 1 with six decimals; empty where nothing is known. Published figures follow in columns of their own, a line for each.
pub(super) fn csv(report: &Report) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(HEADER.iter().copied().chain(["published", "paper", "table"]));
    for table in report.boards.iter().map(|board| &board.table) {
        for row in &table.rows {
            for (metric, cell) in table.metrics.iter().zip(&row.cells) {
                let Some(cell) = cell else { continue };
                for line in lines(table, row, metric, cell) {
                    let _ = writer.write_record(&line);
                }
            }
        }
    }
    let bytes = writer.into_inner().unwrap_or_default();
    harmless(&String::from_utf8_lossy(&bytes)).into_owned()
}

fn lines(table: &Table, row: &Row, metric: &str, cell: &Cell) -> Vec<Vec<String>> {
    let number = |value: f64| format!("{value:.6}");
    let place = &table.place;
    let plain = vec![
        word(&place.dataset),
        word(&place.protocol),
        word(&place.split),
        place.among.to_string(),
        row.name.kind.to_string(),
        word(&row.name.model),
        word(&row.name.variant),
        word(&row.name.features),
        row.seeds.to_string(),
        table.queries.to_string(),
        row.missing.to_string(),
        row.parameters.map_or(String::new(), |n| n.to_string()),
        row.ms_per_query.map_or(String::new(), number),
        metric.to_owned(),
        number(cell.estimate.value),
        number(cell.estimate.low),
        number(cell.estimate.high),
        cell.sd.map_or(String::new(), number),
        cell.best.to_string(),
    ];
    let with = |printed: [String; 3]| plain.iter().cloned().chain(printed).collect::<Vec<_>>();
    if cell.published.is_empty() {
        return vec![with([String::new(), String::new(), String::new()])];
    }
    let published = cell.published.iter();
    published.map(|found| with([number(found.fraction), found.paper.to_owned(), found.table.clone()])).collect()
}

/// A name from anywhere; one that a spreadsheet would compute gets a quote in front.
fn word(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}
