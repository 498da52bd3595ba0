//! The most frequent verbs of each split.

use cuemark_chart::{picture, short};
use maud::html;

use super::super::VerbTable;
use super::BLUE;

/// Pixels for one bar.
const BAR: f64 = 17.0;
/// Pixels left of the bars, for the verbs.
const VERBS: f64 = 110.0;
/// Pixels for the bars of one split, their figures included.
const PANEL: f64 = 260.0;
/// Pixels above the bars, for the split and its coverage.
const TOP: f64 = 60.0;

/// One column of bars for each split: the share of its queries that begin with each verb.
pub(super) fn draw(table: &VerbTable) -> String {
    let size = (VERBS + PANEL * table.splits.len() as f64, TOP + 10.0 + BAR * table.top.len() as f64);
    let middle_of = |row: usize| TOP + BAR * (row as f64 + 0.5);
    let shares: Vec<Vec<f64>> = (0..table.splits.len()).map(|split| shares_of(table, split)).collect();
    let largest = shares.iter().flatten().copied().fold(1e-9, f64::max);
    let drawn = html! {
        @for (row, verb) in table.top.iter().enumerate() {
            text class="title end" x=(short(VERBS - 8.0)) y=(short(middle_of(row) + 4.5)) { (verb.verb) }
        }
        @for (split, shares) in shares.iter().enumerate() {
            @let origin = VERBS + PANEL * split as f64;
            text class="heading" x=(short(origin)) y="24" { (table.splits[split]) }
            text class="title" x=(short(origin)) y="46" {
                (table.top.len()) " verbs cover " (format!("{:.1}", 100.0 * table.coverage[split])) " % of queries"
            }
            @for (row, share) in shares.iter().enumerate() {
                @let width = (PANEL - 70.0) * share / largest;
                rect x=(short(origin)) y=(short(middle_of(row) - BAR / 2.0 + 2.0)) width=(short(width)) height=(short(BAR - 4.0)) style=(BLUE) {}
                text x=(short(origin + width + 4.0)) y=(short(middle_of(row) + 4.0)) { (format!("{:.1} %", 100.0 * share)) }
            }
        }
    };
    picture("the most frequent verbs of each split", size, &drawn)
}

/// The share of a split's queries that begins with each verb of the table.
fn shares_of(table: &VerbTable, split: usize) -> Vec<f64> {
    let queries = table.queries[split].max(1) as f64;
    table.top.iter().map(|verb| verb.queries[split] as f64 / queries).collect()
}
