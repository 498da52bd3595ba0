//! The pictures of the bias papers, as SVG files that open anywhere.

mod heat_map;
mod lengths;
mod verb_bars;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{NormSpan, Split};
use cuemark_formats::{Overwrite, WholeFile};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::raw_spans;
use super::verbs::{KnownVerbs, VerbTable};
use crate::pairs::pairs;
use crate::{ProtocolError, Result};
use heat_map::{Cells, HeatMap};

/// Verbs that get a heat map of their own, in rows of four.
const VERB_MAPS: usize = 12;
/// Side of one heat map, in pixels.
const MAP: u32 = 420;

/// Part of a picture, or the whole of it.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What a drawing step answers: the library's complaint as text.
type Drawn = std::result::Result<(), String>;

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
        picture("moments", |svg| maps_in_rows(svg, &panels, HeatMap::start_and_end()))?,
        picture("lengths", |svg| lengths::draw(svg, &panels))?,
        picture("length-given-start", |svg| maps_in_rows(svg, &panels, HeatMap::length_given_start()))?,
    ];
    if !verbs.table.top.is_empty() {
        pictures.push(picture("verbs", |svg| verb_bars::draw(svg, &verbs.table))?);
        for split in splits {
            let panels = verb_panels(split, &verbs)?;
            let name = format!("verb-moments-{}", split.name);
            pictures.push(picture(&name, |svg| maps_in_rows(svg, &panels, HeatMap::start_and_end()))?);
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

/// One picture's name and text.
fn picture(name: &str, draw: impl FnOnce(&mut String) -> Drawn) -> Result<(String, String)> {
    let mut svg = String::new();
    draw(&mut svg).map_err(|problem| ProtocolError::Plot { path: format!("{name}.svg"), problem })?;
    Ok((name.to_owned(), svg))
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

/// One heat map for each panel, four in a row.
fn maps_in_rows(svg: &mut String, panels: &[(String, Vec<NormSpan>)], map: HeatMap) -> Drawn {
    let columns = panels.len().clamp(1, 4);
    let rows = panels.len().div_ceil(columns).max(1);
    let root = SVGBackend::with_string(svg, (MAP * columns as u32, MAP * rows as u32)).into_drawing_area();
    root.fill(&WHITE).map_err(text)?;
    for ((name, spans), area) in panels.iter().zip(root.split_evenly((rows, columns))) {
        map.draw(&area, name, &Cells::of(spans, map))?;
    }
    root.present().map_err(text)
}

#[allow(clippy::needless_pass_by_value)] // `map_err` hands the error over.
fn text(error: impl ToString) -> String {
    error.to_string()
}
