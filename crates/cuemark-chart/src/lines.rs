//! Lines and dots in a frame.

use maud::{Markup, html};

use crate::{Axis, Frame, Room, short};

/// Width and height of a chart in a page, in its own units.
const SIZE: (f64, f64) = (380.0, 250.0);
/// Room for its labels.
const ROOM: Room = Room { left: 44.0, top: 12.0, right: 12.0, bottom: 40.0 };

/// What is drawn.
#[derive(Debug, Clone)]
pub struct Series {
    /// CSS class of its colour.
    pub class: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Interval of each point; empty for none.
    pub bars: Vec<(f64, f64)>,
    /// How.
    pub style: Style,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A broken line.
    Dashed,
    /// Dots on a thin line.
    Dots,
}

/// A chart of a page with its axes; `label` says to people who cannot see it what it shows.
pub fn chart(label: &str, x: &Axis, y: &Axis, series: &[Series]) -> Markup {
    let frame = Frame { corner: (0.0, 0.0), size: SIZE, room: ROOM, x, y };
    html! {
        svg class="chart" viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img" aria-label=(label) {
            (frame.axes())
            @for one in series { (drawn(one, &frame)) }
        }
    }
}

/// One series in a frame.
pub fn drawn(series: &Series, frame: &Frame<'_>) -> Markup {
    let (across, up) = (|x: f64| short(frame.across(x)), |y: f64| short(frame.up(y)));
    let line: Vec<String> = series.points.iter().map(|(x, y)| format!("{},{}", across(*x), up(*y))).collect();
    let style = match series.style {
        Style::Line => "line",
        Style::Dashed => "line dashed",
        Style::Dots => "line thin",
    };
    html! {
        g class=(series.class) {
            @if series.points.len() > 1 { polyline class=(style) points=(line.join(" ")) {} }
            @for ((x, _), (low, high)) in series.points.iter().zip(&series.bars) {
                line class="bar" x1=(across(*x)) x2=(across(*x)) y1=(up(*low)) y2=(up(*high)) {}
            }
            @if series.style == Style::Dots || series.points.len() == 1 {
                @for (x, y) in &series.points { circle class="dot" cx=(across(*x)) cy=(up(*y)) r="2.8" {} }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_escaped() {
        let chart = chart(
            "<script>",
            &Axis::named(&["\"><b>".into()], "x"),
            &Axis::even(0.0, 1.0, "y", |_| "</svg>".into()),
            &[],
        );
        assert!(!chart.0.contains("<script>") && !chart.0.contains("<b>"));
        assert_eq!(chart.0.matches("</svg>").count(), 1);
    }
}
