//! Where moments lie, as a map of coloured cells.

use cuemark_core::NormSpan;
use plotters::prelude::*;

use super::{Area, Drawn, text};

/// Cells along each side of a map.
const SIDE: usize = 40;
/// The darkest colour of a map by columns: where moments were clipped, one cell is all of its column and would pale the rest.
const COLUMN_LIMIT: f64 = 0.25;
/// Colours from few to many: pale to dark, each darker than the one before, so that print and eyes without colour keep the order.
const RAMP: [[f64; 3]; 5] =
    [[255.0, 255.0, 217.0], [161.0, 218.0, 180.0], [65.0, 182.0, 196.0], [34.0, 94.0, 168.0], [8.0, 29.0, 88.0]];

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
    pub(super) fn draw(self, area: &Area<'_>, name: &str, cells: &Cells) -> Drawn {
        let (width, height) = area.dim_in_pixel();
        let (chart_area, scale_area) = area.split_horizontally(width.saturating_sub(70));
        let title = format!("{name}: {} moments", cells.moments);
        let mut chart = ChartBuilder::on(&chart_area)
            .caption(title, ("sans-serif", 17))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(44)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)
            .map_err(text)?;
        let mesh = |axis: &str| format!("{axis} (share of the video)");
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(6)
            .y_labels(6)
            .x_desc(mesh("start"))
            .y_desc(mesh(self.vertical_name))
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()
            .map_err(text)?;
        let step = 1.0 / SIDE as f64;
        let darkest = match self.each {
            Share::Map => cells.largest(),
            Share::Column => cells.largest().min(COLUMN_LIMIT),
        };
        let rectangles = cells.share.iter().enumerate().filter(|(_, share)| **share > 0.0).map(|(cell, share)| {
            let (left, low) = ((cell % SIDE) as f64 * step, (cell / SIDE) as f64 * step);
            Rectangle::new([(left, low), (left + step, low + step)], colour(share / darkest).filled())
        });
        chart.draw_series(rectangles).map_err(text)?;
        self.draw_scale(&scale_area, height, darkest)
    }

    fn draw_scale(self, area: &Area<'_>, height: u32, darkest: f64) -> Drawn {
        let (top, bottom) = (44, height as i32 - 60);
        let steps = 60;
        for n in 0..steps {
            let edge = |n: i32| bottom - (bottom - top) * n / steps;
            let fill = colour(f64::from(n) / f64::from(steps - 1)).filled();
            area.draw(&Rectangle::new([(4, edge(n + 1)), (18, edge(n))], fill)).map_err(text)?;
        }
        let (what, up_to) = match self.each {
            Share::Map => ("of all", ""),
            Share::Column => ("of column", "≥ "),
        };
        let most = format!("{up_to}{:.1} %", 100.0 * darkest);
        let labels = [(most, 22, top - 4), ("0 %".to_owned(), 22, bottom - 8), (what.to_owned(), 0, top - 22)];
        for (label, x, y) in labels {
            area.draw(&Text::new(label, (x, y), ("sans-serif", 12))).map_err(text)?;
        }
        Ok(())
    }
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

/// The colour for a value in 0..1.
fn colour(value: f64) -> RGBColor {
    let place = value.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (place as usize).min(RAMP.len() - 2);
    let mix = |channel: usize| {
        let (from, to) = (RAMP[below][channel], RAMP[below + 1][channel]);
        (from + (to - from) * (place - below as f64)).round() as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
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
    fn colours_only_get_darker() {
        let light = |value: f64| {
            let RGBColor(r, g, b) = colour(value);
            0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b)
        };
        assert!((0..100).all(|n| light(f64::from(n) / 100.0) > light(f64::from(n + 1) / 100.0)));
    }
}
