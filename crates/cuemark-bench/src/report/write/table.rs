//! Tables of the page: sortable, with intervals and published figures in their cells.

use maud::{Markup, html};

use super::super::about::Answerer;
use super::super::table::{Cell, Row, Table};
use super::text::{counted, explained, percent, points, short, thousands};
use crate::published::PAPERS;

/// One column's name and what it means.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) title: String,
}

impl Column {
    pub(super) fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self { name: name.into(), title: title.into() }
    }
}

/// A table that the reader can sort by any column; `rows` are complete `tr` elements.
pub(super) fn sortable(caption: &Markup, columns: &[Column], rows: &Markup) -> Markup {
    html! {
        div class="wide" role="region" tabindex="0" aria-label="table, scrolls sideways" {
            table class="sortable" {
                caption { (caption) }
                thead { tr {
                    @for column in columns {
                        th scope="col" { button type="button" title=(column.title) { (column.name) } }
                    }
                } }
                tbody { (rows) }
            }
        }
    }
}

/// The table of one place.
pub(super) fn scores(table: &Table) -> Markup {
    let sources = table.sources();
    let mark = |paper: &str| {
        let n = sources.iter().position(|source| *source == paper).unwrap_or(0);
        char::from(b'a' + (n % 26) as u8).to_string()
    };
    let several = table.rows.iter().any(|row| row.seeds > 1);
    let features = table.rows.iter().any(|row| !row.name.features.is_empty());
    let cost = table.rows.iter().any(|row| row.parameters.is_some() || row.ms_per_query.is_some());
    let mut columns = vec![Column::new("method", "who answered")];
    if features {
        columns.push(Column::new("features", "what the videos were turned into"));
    }
    if several {
        columns.push(Column::new("seeds", "runs that were averaged"));
    }
    columns.extend(table.metrics.iter().map(|metric| Column::new(metric.as_str(), explained(metric))));
    if cost {
        columns.push(Column::new("parameters", "trainable parameters"));
        columns.push(Column::new("ms/query", "milliseconds to answer one query"));
    }
    let caption = html! {
        "Percent of " (counted(table.queries, "query", "queries")) ", below each its 95 % interval."
        @if several { " ± is the standard deviation over seeds." }
        " Bold: better than the next best in a paired test (p < 0.05)."
    };
    let rows = html! {
        @for row in &table.rows {
            tr class=[(row.name.kind == Answerer::Baseline).then_some("baseline")] {
                th scope="row" { (short(&row.name.label(), 80)) @if row.missing > 0 { " " span class="quiet" title="queries without an answer" { "(" (thousands(row.missing)) " unanswered)" } } }
                @if features { td class="word" { (short(&row.name.features, 40)) } }
                @if several { td data-value=(row.seeds) { (row.seeds) } }
                @for cell in &row.cells { (score(cell.as_ref(), &mark)) }
                @if cost { (costs(row)) }
            }
        }
    };
    html! {
        (sortable(&caption, &columns, &rows))
        @if !sources.is_empty() {
            p class="sources" {
                "Published: "
                @for paper in &sources {
                    span class="source" { sup { (mark(paper)) } " " (title_of(paper)) " (" (paper) ")" }
                    " "
                }
                "Papers may have used other features; hover over a figure for its table."
            }
        }
        (contests(table))
    }
}

fn score(cell: Option<&Cell>, mark: &dyn Fn(&str) -> String) -> Markup {
    let Some(cell) = cell else { return html! { td data-value="-1" { "–" } } };
    let value = percent(cell.estimate.value);
    html! {
        td data-value=(format!("{:.6}", cell.estimate.value)) {
            @if cell.best { b { (value) } } @else { (value) }
            @if let Some(sd) = cell.sd { span class="sd" { " ±" (percent(sd)) } }
            span class="ci" { (percent(cell.estimate.low)) "–" (percent(cell.estimate.high)) }
            @for printed in &cell.published {
                @let shown = if printed.fraction > 0.0 && printed.printed.starts_with("0.") && printed.fraction < 1.0 { format!("{:.2}", 100.0 * printed.fraction) } else { printed.printed.clone() };
                span class="published" title=(format!("table {}{}{}", printed.table, if printed.features.is_empty() { String::new() } else { format!(", {} features", printed.features) }, printed.doubt.as_ref().map_or(String::new(), |doubt| format!("; doubtful: {doubt}")))) {
                    (shown) sup { (mark(printed.paper)) } @if printed.doubt.is_some() { "?" }
                }
            }
        }
    }
}

fn costs(row: &Row) -> Markup {
    html! {
        td data-value=(row.parameters.unwrap_or(0)) { @match row.parameters { Some(n) => (thousands(n as usize)), None => "–" } }
        td data-value=(row.ms_per_query.unwrap_or(-1.0)) { @match row.ms_per_query { Some(ms) => (format!("{ms:.1}")), None => "–" } }
    }
}

/// Who is best at each metric, and whether that means anything.
fn contests(table: &Table) -> Markup {
    let found: Vec<_> = table
        .metrics
        .iter()
        .zip(&table.contests)
        .filter_map(|(metric, contest)| Some((metric, contest.as_ref()?)))
        .collect();
    if found.is_empty() {
        return html! {};
    }
    html! {
        details {
            summary { "Best against next best, on the same queries" }
            div class="wide" role="region" tabindex="0" aria-label="tests, scrolls sideways" {
                table class="plain" {
                    thead { tr { th scope="col" { "metric" } th scope="col" { "best" } th scope="col" { "next" } th scope="col" { "lead" } th scope="col" { "95 % interval" } th scope="col" { "p" } } }
                    tbody {
                        @for (metric, contest) in found {
                            tr {
                                th scope="row" { (metric) }
                                td class="word" { (short(&contest.best, 60)) } td class="word" { (short(&contest.next, 60)) }
                                td { (points(contest.lead.value)) } td { (points(contest.lead.low)) " to " (points(contest.lead.high)) }
                                td { (format!("{:.4}", contest.p_value)) }
                            }
                        }
                    }
                }
            }
            p class="quiet" { "Paired bootstrap interval and paired randomisation test over queries, 2,000 resamples; scores are averaged over seeds first." }
        }
    }
}

fn title_of(key: &str) -> &'static str {
    PAPERS.iter().find(|paper| paper.key == key).map_or("", |paper| paper.title)
}
