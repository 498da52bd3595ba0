//! Heat maps as SVG: one path for each of eight tones.

use maud::{Markup, html};

use super::super::heat::{HeatMap, SIDE};
use super::text::{counted, short};

/// Tones from pale to full.
const TONES: usize = 8;

/// The share that gets the full tone: twice the truth's fullest cell, so that a collapse does not pale everything else.
pub(super) fn full_tone(truth: Option<&HeatMap>, maps: &[HeatMap]) -> f64 {
    let fullest = |map: &HeatMap| map.share.iter().copied().fold(0.0, f64::max);
    let of_truth = truth.map_or(0.0, |map| 2.0 * fullest(map));
    if of_truth > 0.0 { of_truth } else { maps.iter().map(fullest).fold(f64::MIN_POSITIVE, f64::max) }
}

/// One map: start across, end up, both in twentieths of the video; a cell's tone grows with the root of its share.
pub(super) fn heat_map(map: &HeatMap, full: f64) -> Markup {
    let tone = |share: f64| ((share / full).sqrt().min(1.0) * TONES as f64).ceil() as usize;
    let path = |wanted: usize| {
        let mut path = String::new();
        for (cell, share) in map.share.iter().enumerate() {
            if *share > 0.0 && tone(*share).max(1) == wanted {
                path += &format!("M{} {}h1v1h-1z", cell % SIDE, SIDE - 1 - cell / SIDE);
            }
        }
        path
    };
    let label = format!("where the spans of {} lie, start across and end up", short(&map.title, 60));
    html! {
        figure class="map" {
            svg viewBox="-1.4 -0.5 22.2 22.4" role="img" aria-label=(label) {
                rect class="field" x="0" y="0" width="20" height="20" {}
                @for wanted in 1..=TONES {
                    @let path = path(wanted);
                    @if !path.is_empty() { path class=(format!("t{wanted}")) d=(path) {} }
                }
                line class="diagonal" x1="0" y1="20" x2="20" y2="0" {}
                text class="map-axis" x="20" y="21.4" { "start →" }
                text class="map-axis" transform="translate(-0.4 0) rotate(-90)" { "end →" }
            }
            figcaption { b { (short(&map.title, 60)) } " " span class="quiet" { (counted(map.spans, "span", "spans")) } }
        }
    }
}
