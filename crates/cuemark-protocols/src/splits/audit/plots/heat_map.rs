//! Where moments lie, as a map of coloured cells.

use cuemark_chart::{Axis, Frame, Room, short, tone};
use cuemark_core::NormSpan;
use maud::{Markup, html};

/// Cells along each side of a map.
const SIDE: usize = 40;
/// The darkest colour of a map by columns: where moments were clipped, one cell is all of its column and would pale the rest.
const COLUMN_LIMIT: f64 = 0.25;
/// Room around a map; the scale stands on its right.
const ROOM: Room = Room { left: 52.0, top: 34.0, right: 84.0, bottom: 44.0 };

/// What a map shows.
#[derive(Clone, Copy)]
pub(super) struct HeatMap {
    vertical: fn(NormSpan) -> f64,
    vertical_name: &'static str,
    each: Share,
}

/// What the cells of a map add up to 1 over.
#[derive(Clone, Copy, PartialEq)]
enum Share {
    /// The whole map.
    Map,
    /// Each column by itself.
    Column,
}

impl HeatMap {
    /// Start across, end up.
    pub(super) fn start_and_end() -> Self {
        Self { vertical: NormSpan::end, vertical_name: "end", each: Share::Map }
    }

    /// Start across, length up, every start by itself.
    pub(super) fn length_given_start() -> Self {
        Self { vertical: NormSpan::len, vertical_name: "length", each: Share::Column }
    }

    /// Draws one map with its scale beside it.
    pub(super) fn draw(self, corner: (f64, f64), size: (f64, f64), name: &str, cells: &Cells) -> Markup {
        let of_video = |axis: &str| Axis::unit(format!("{axis} (share of the video)"));
        let (x, y) = (of_video("start"), of_video(self.vertical_name));
        let frame = Frame { corner, size, room: ROOM, x: &x, y: &y };
        let step = 1.0 / SIDE as f64;
        let darkest = match self.each {
            Share::Map => cells.largest(),
            Share::Column => cells.largest().min(COLUMN_LIMIT),
        };
        let seen = cells.share.iter().enumerate().filter(|(_, share)| **share > 0.0);
        html! {
            text class="heading" x=(short(frame.left())) y=(short(corner.1 + 22.0)) { (name) ": " (cells.moments) " moments" }
            (frame.axes())
            @for (cell, share) in seen {
                @let (left, low) = ((cell % SIDE) as f64 * step, (cell / SIDE) as f64 * step);
                (frame.cell([left, left + step], [low, low + step], &fill(share / darkest)))
            }
            (self.scale(&frame, darkest))
        }
    }

    /// Which colour means how much.
    fn scale(self, frame: &Frame<'_>, darkest: f64) -> Markup {
        const STEPS: usize = 30;
        let (left, top, bottom) = (frame.right() + 10.0, frame.top(), frame.bottom());
        let height = (bottom - top) / STEPS as f64;
        let (what, up_to) = match self.each {
            Share::Map => ("of all", ""),
            Share::Column => ("of column", "≥ "),
        };
        html! {
            @for n in 0..STEPS {
                @let y = bottom - (n + 1) as f64 * height;
                rect x=(short(left)) y=(short(y)) width="14" height=(short(height + 0.5)) style=(fill(n as f64 / (STEPS - 1) as f64)) {}
            }
            text x=(short(left + 18.0)) y=(short(top + 9.0)) { (up_to) (format!("{:.1} %", 100.0 * darkest)) }
            text x=(short(left + 18.0)) y=(short(bottom)) { "0 %" }
            text x=(short(left)) y=(short(top - 8.0)) { (what) }
        }
    }
}

fn fill(value: f64) -> String {
    let [red, green, blue] = tone(value);
    format!("fill:rgb({red},{green},{blue});shape-rendering:crispEdges")
}

/// Shares of moments in the cells of a map, row after row from the lowest.
pub(super) struct Cells {
    share: Vec<f64>,
    moments: usize,
}

impl Cells {
    /// Counts `spans`, which lie in 0..1; a bound of exactly 1 belongs to the last cell.
    pub(super) fn of(spans: &[NormSpan], map: HeatMap) -> Self {
        let cell = |place: f64| ((place * SIDE as f64) as usize).min(SIDE - 1);
        let mut share = vec![0.0; SIDE * SIDE];
        for span in spans {
            share[cell((map.vertical)(*span)) * SIDE + cell(span.start())] += 1.0;
        }
        for column in 0..SIDE {
            let in_column = (0..SIDE).map(|row| share[row * SIDE + column]).sum::<f64>();
            let whole = if map.each == Share::Column { in_column } else { spans.len() as f64 };
            (0..SIDE).for_each(|row| share[row * SIDE + column] /= whole.max(1.0));
        }
        Self { share, moments: spans.len() }
    }

    fn largest(&self) -> f64 {
        self.share.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_to_one_over_the_map_or_over_each_column() {
        let spans: Vec<NormSpan> = [(0.0, 0.1), (0.0, 1.0), (0.5, 0.6), (1.0, 1.0)]
            .map(|(start, end)| NormSpan::new(start, end).unwrap())
            .to_vec();
        let joint = Cells::of(&spans, HeatMap::start_and_end());
        assert!((joint.share.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(joint.share[SIDE * SIDE - 1], 0.25, "the bound 1 is inside");
        let given = Cells::of(&spans, HeatMap::length_given_start());
        assert!((given.share.iter().sum::<f64>() - 3.0).abs() < 1e-12, "three starts, each adds up to 1");
    }

    #[test]
    fn every_cell_with_a_moment_is_drawn_where_it_lies() {
        let spans = [NormSpan::new(0.0, 1.0).unwrap()];
        let map = HeatMap::start_and_end();
        let drawn = map.draw((0.0, 0.0), (420.0, 420.0), "train", &Cells::of(&spans, map)).0;
        // The cell in the upper left corner of the field, as dark as can be.
        assert!(drawn.contains(r#"x="52" y="34" width="7.1" height="8.5" style="fill:rgb(8,29,88)"#), "{drawn}");
    }
}
