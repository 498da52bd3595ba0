//! The pictures of the bias papers, as SVG files that open anywhere.

mod heat_map;
mod lengths;
mod verb_bars;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_chart::picture;
use cuemark_core::{NormSpan, Split};
use cuemark_formats::{Overwrite, WholeFile};
use maud::{Markup, html};

use super::raw_spans;
use super::verbs::{KnownVerbs, VerbTable};
use crate::Result;
use crate::pairs::pairs;
use heat_map::{Cells, HeatMap};

/// Verbs that get a heat map of their own, in rows of four.
const VERB_MAPS: usize = 12;
/// Width and height of one heat map, in pixels.
const MAP: (f64, f64) = (440.0, 400.0);
/// Panels in a row.
const COLUMNS: usize = 4;
/// What bars look like.
const BLUE: &str = "fill:#225ea8";

/// Moments under a name.
type Panels = [(String, Vec<NormSpan>)];

/// Draws the audit of `splits` into `folder` and returns the files, in the order a report shows them.
///
/// `moments.svg` (where starts and ends lie), `lengths.svg`, `length-given-start.svg`, `verbs.svg` (the thirty most frequent
/// verbs and their coverage) and, for each split, `verb-moments-SPLIT.svg` (the first of them, one heat map a verb).
///
/// # Errors
/// As [`audit`](super::audit); when a file stands there and may not be replaced, or cannot be written.
pub fn draw(splits: &[Split], folder: &Utf8Path, overwrite: Overwrite) -> Result<Vec<Utf8PathBuf>> {
    let verbs = VerbTable::of(splits);
    let mut panels: Vec<(String, Vec<NormSpan>)> = Vec::new();
    for split in splits {
        panels.push((split.name.clone(), raw_spans(split)?.into_iter().map(NormSpan::clipped).collect()));
    }
    let mut pictures: Vec<(String, String)> = vec![
        ("moments".to_owned(), maps_in_rows(&panels, HeatMap::start_and_end())),
        ("lengths".to_owned(), lengths::draw(&panels)),
        ("length-given-start".to_owned(), maps_in_rows(&panels, HeatMap::length_given_start())),
    ];
    if !verbs.table.top.is_empty() {
        pictures.push(("verbs".to_owned(), verb_bars::draw(&verbs.table)));
        for split in splits {
            let panels = verb_panels(split, &verbs)?;
            let name = format!("verb-moments-{}", split.name);
            pictures.push((name, maps_in_rows(&panels, HeatMap::start_and_end())));
        }
    }
    let mut files = Vec::new();
    for (name, svg) in &pictures {
        let path = folder.join(format!("{name}.svg"));
        WholeFile::write_all_to(&path, overwrite, svg.as_bytes())?;
        files.push(path);
    }
    Ok(files)
}

/// Moments of each frequent verb, under a title that says how many there are.
fn verb_panels(split: &Split, verbs: &KnownVerbs<'_>) -> Result<Vec<(String, Vec<NormSpan>)>> {
    let pairs = pairs(&split.queries)?;
    let of_verb = |verb: &str| -> Vec<NormSpan> {
        let same = |text: &str| verbs.verb_of(text).as_deref() == Some(verb);
        pairs.iter().filter(|pair| same(&pair.truth.query.text)).map(|pair| pair.span.clipped()).collect()
    };
    let top = verbs.table.top.iter().take(VERB_MAPS);
    Ok(top.map(|row| (row.verb.clone(), of_verb(&row.verb))).collect())
}

/// One heat map for each panel.
fn maps_in_rows(panels: &Panels, map: HeatMap) -> String {
    in_rows("where moments lie", panels, MAP, |number, corner| {
        let (name, spans) = &panels[number];
        map.draw(corner, MAP, name, &Cells::of(spans, map))
    })
}

/// One drawing of `size` for each panel, four in a row; `draw` is told which and where its upper left corner is.
fn in_rows(label: &str, panels: &Panels, size: (f64, f64), draw: impl Fn(usize, (f64, f64)) -> Markup) -> String {
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let corner = |number: usize| ((number % columns) as f64 * size.0, (number / columns) as f64 * size.1);
    let drawn = html! { @for number in 0..panels.len() { (draw(number, corner(number))) } };
    picture(label, (columns as f64 * size.0, rows as f64 * size.1), &drawn)
}
