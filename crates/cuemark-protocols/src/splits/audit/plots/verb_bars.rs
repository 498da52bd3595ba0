//! The most frequent verbs of each split.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::VerbTable;
use super::{Drawn, text};

/// Pixels for one bar.
const BAR: i32 = 17;
/// Pixels left of the bars, for the verbs.
const VERBS: i32 = 110;

/// One column of bars for each split: the share of its queries that begin with each verb.
pub(super) fn draw(svg: &mut String, table: &VerbTable) -> Drawn {
    let panel = 260;
    let height = 70 + BAR * table.top.len() as i32;
    let width = VERBS + panel * table.splits.len() as i32;
    let root = SVGBackend::with_string(svg, (width as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(text)?;
    let label = ("sans-serif", 13).into_font().color(&BLACK);
    let right = label.pos(Pos::new(HPos::Right, VPos::Center));
    let left = label.pos(Pos::new(HPos::Left, VPos::Center));
    let middle_of = |row: usize| 60 + BAR * row as i32 + BAR / 2;
    for (row, verb) in table.top.iter().enumerate() {
        root.draw(&Text::new(verb.verb.clone(), (VERBS - 8, middle_of(row)), right.clone())).map_err(text)?;
    }
    let shares: Vec<Vec<f64>> = (0..table.splits.len()).map(|split| shares_of(table, split)).collect();
    let largest = shares.iter().flatten().copied().fold(1e-9, f64::max);
    for (split, shares) in shares.iter().enumerate() {
        let origin = VERBS + panel * split as i32;
        let title = ("sans-serif", 17).into_font().color(&BLACK);
        root.draw(&Text::new(table.splits[split].clone(), (origin, 12), title)).map_err(text)?;
        let coverage = format!("{} verbs cover {:.1} % of queries", table.top.len(), 100.0 * table.coverage[split]);
        root.draw(&Text::new(coverage, (origin, 34), ("sans-serif", 13))).map_err(text)?;
        for (row, share) in shares.iter().enumerate() {
            let end = origin + (f64::from(panel - 70) * share / largest) as i32;
            let (top, bottom) = (middle_of(row) - BAR / 2 + 2, middle_of(row) + BAR / 2 - 2);
            root.draw(&Rectangle::new([(origin, top), (end, bottom)], RGBColor(34, 94, 168).filled())).map_err(text)?;
            let figure = format!("{:.1} %", 100.0 * share);
            root.draw(&Text::new(figure, (end + 4, middle_of(row)), left.clone())).map_err(text)?;
        }
    }
    root.present().map_err(text)
}

/// The share of a split's queries that begins with each verb of the table.
fn shares_of(table: &VerbTable, split: usize) -> Vec<f64> {
    let queries = table.queries[split].max(1) as f64;
    table.top.iter().map(|verb| verb.queries[split] as f64 / queries).collect()
}
