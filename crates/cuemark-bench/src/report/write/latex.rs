//! The tables as LaTeX (`booktabs`), to be put into a paper with `\\input`: no wider than a column.

use cuemark_metrics::{Sheet, SheetCell, SheetRow};

use super::super::table::{Cell, Table};
use super::super::{Intervals, Report};
use super::text::{harmless, percent, short, thousands};

pub(super) fn latex(report: &Report) -> String {
    let tables: Vec<String> =
        report.boards.iter().map(|board| sheet(&board.table, report.intervals).to_latex()).collect();
    harmless(&tables.join("\n")).into_owned()
}

/// The table of one place as papers want it: a row per method, a rule above the baselines.
pub(in super::super) fn sheet(table: &Table, intervals: Intervals) -> Sheet {
    let mut is_above = false;
    let rows = table.rows.iter().map(|row| {
        let is_baseline = row.name.kind == super::super::about::Answerer::Baseline;
        let rule = is_baseline && is_above;
        is_above = !is_baseline;
        SheetRow {
            name: short(&row.name.label(), 60).into_owned(),
            cells: row.cells.iter().map(|cell| cell.as_ref().map(|cell| score(cell, intervals))).collect(),
            rule,
        }
    });
    let rows: Vec<SheetRow> = rows.collect();
    let mut notes = vec!["Bold: better than the next best, paired test, p < 0.05.".to_owned()];
    if intervals == Intervals::Shown {
        notes.push("Small: 95 % interval.".to_owned());
    }
    let missing = table.rows.iter().filter(|row| row.missing > 0);
    notes.extend(
        missing.map(|row| format!("{} leaves {} unanswered.", short(&row.name.label(), 60), thousands(row.missing))),
    );
    Sheet {
        title: format!("{}: percent of {} queries.", short(&table.place.title(), 200), thousands(table.queries)),
        corner: "method".to_owned(),
        columns: table.metrics.clone(),
        rows,
        notes,
    }
}

fn score(cell: &Cell, intervals: Intervals) -> SheetCell {
    let below = match intervals {
        Intervals::Shown => format!("{} – {}", percent(cell.estimate.low), percent(cell.estimate.high)),
        Intervals::Hidden => String::new(),
    };
    SheetCell {
        text: percent(cell.estimate.value),
        spread: cell.sd.map_or(String::new(), |sd| format!("±{}", percent(sd))),
        below,
        is_bold: cell.best,
        mark: String::new(),
    }
}
