//! How long moments are, as a share of their video.

use cuemark_chart::{Axis, Frame, Room, short};
use cuemark_core::NormSpan;
use maud::{Markup, html};

use super::{BLUE, Panels};

/// Bars in each histogram.
const BARS: usize = 40;
/// Width and height of one histogram.
const SIZE: (f64, f64) = (400.0, 300.0);
const ROOM: Room = Room { left: 52.0, top: 34.0, right: 14.0, bottom: 44.0 };

/// One histogram for each panel, side by side on one scale.
pub(super) fn draw(panels: &Panels) -> String {
    let histograms: Vec<Vec<f64>> = panels.iter().map(|(_, spans)| histogram(spans)).collect();
    let tallest = histograms.iter().flatten().copied().fold(0.01, f64::max);
    let x = Axis::unit("length (share of the video)");
    let y = Axis::even(0.0, 100.0 * tallest * 1.05, "moments (%)", short);
    super::in_rows("how long moments are", panels, SIZE, |number, corner| {
        let frame = Frame { corner, size: SIZE, room: ROOM, x: &x, y: &y };
        let (name, spans) = &panels[number];
        one(&frame, &format!("{name}: {} moments", spans.len()), &histograms[number])
    })
}

fn one(frame: &Frame<'_>, heading: &str, shares: &[f64]) -> Markup {
    let step = 1.0 / BARS as f64;
    html! {
        text class="heading" x=(short(frame.left())) y=(short(frame.corner.1 + 22.0)) { (heading) }
        (frame.axes())
        @for (bar, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            @let left = bar as f64 * step;
            (frame.cell([left, left + 0.92 * step], [0.0, 100.0 * share], BLUE))
        }
    }
}

/// The share of `spans` in each class of lengths; a length of exactly 1 belongs to the last.
fn histogram(spans: &[NormSpan]) -> Vec<f64> {
    let mut shares = vec![0.0; BARS];
    for span in spans {
        shares[((span.len() * BARS as f64) as usize).min(BARS - 1)] += 1.0 / spans.len() as f64;
    }
    shares
}
