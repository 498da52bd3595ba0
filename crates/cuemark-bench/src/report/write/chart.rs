//! Charts of lines and dots as SVG that takes its colours from the page, so that it follows print and darkness.

use maud::{Markup, html};

/// Width and height of a chart, in its own units.
const SIZE: (f64, f64) = (380.0, 250.0);
/// Room for labels: left, top, right, bottom.
const ROOM: (f64, f64, f64, f64) = (44.0, 12.0, 12.0, 40.0);

/// One axis: its range, the places that are named, and what it shows.
pub(super) struct Axis {
    pub(super) range: (f64, f64),
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) title: String,
}

impl Axis {
    /// From `low` to `high`, with four to seven round ticks.
    pub(super) fn even(low: f64, high: f64, title: impl Into<String>, label: impl Fn(f64) -> String) -> Self {
        let width = if high > low { high - low } else { 1.0 };
        let magnitude = 10f64.powf((width / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * magnitude).find(|step| width / step <= 6.0);
        let step = step.unwrap_or(width);
        let first = (low / step).ceil() as i64;
        let last = ((low + width) / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|n| n as f64 * step).map(|at| (at, label(at))).collect();
        Self { range: (low, low + width), ticks, title: title.into() }
    }

    /// One place for each of `names`.
    pub(super) fn named(names: &[String], title: impl Into<String>) -> Self {
        let ticks = names.iter().enumerate().map(|(n, name)| (n as f64, name.clone())).collect();
        Self { range: (-0.5, names.len() as f64 - 0.5), ticks, title: title.into() }
    }
}

/// What is drawn.
pub(super) struct Series {
    /// CSS class of its colour.
    pub(super) class: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Interval of each point; empty for none.
    pub(super) bars: Vec<(f64, f64)>,
    pub(super) style: Style,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Line,
    Dashed,
    Dots,
}

/// A chart with its axes; `label` says to people who cannot see it what it shows.
pub(super) fn chart(label: &str, x: &Axis, y: &Axis, series: &[Series]) -> Markup {
    let (left, top, right, bottom) = ROOM;
    let (width, height) = SIZE;
    let scale = |axis: &Axis, value: f64| (value - axis.range.0) / (axis.range.1 - axis.range.0);
    let across = |value: f64| left + scale(x, value) * (width - left - right);
    let up = |value: f64| height - bottom - scale(y, value).clamp(0.0, 1.0) * (height - top - bottom);
    html! {
        svg class="chart" viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(label) {
            @for (at, name) in &y.ticks {
                line class="grid" x1=(left) x2=(width - right) y1=(short(up(*at))) y2=(short(up(*at))) {}
                text class="tick end" x=(left - 6.0) y=(short(up(*at) + 3.5)) { (name) }
            }
            @for (at, name) in &x.ticks {
                line class="notch" x1=(short(across(*at))) x2=(short(across(*at))) y1=(height - bottom) y2=(height - bottom + 4.0) {}
                text class="tick middle" x=(short(across(*at))) y=(height - bottom + 16.0) { (name) }
            }
            line class="axis" x1=(left) x2=(width - right) y1=(height - bottom) y2=(height - bottom) {}
            text class="title middle" x=(short((left + width - right) / 2.0)) y=(height - 6.0) { (x.title) }
            text class="title middle" transform=(format!("translate(11 {}) rotate(-90)", short((top + height - bottom) / 2.0))) { (y.title) }
            @for one in series { (drawn(one, &across, &up)) }
        }
    }
}

fn drawn(series: &Series, across: &dyn Fn(f64) -> f64, up: &dyn Fn(f64) -> f64) -> Markup {
    let place = |(x, y): &(f64, f64)| format!("{},{}", short(across(*x)), short(up(*y)));
    let line: Vec<String> = series.points.iter().map(place).collect();
    let style = match series.style {
        Style::Line => "line",
        Style::Dashed => "line dashed",
        Style::Dots => "line thin",
    };
    html! {
        g class=(series.class) {
            @if series.points.len() > 1 { polyline class=(style) points=(line.join(" ")) {} }
            @for ((x, _), (low, high)) in series.points.iter().zip(&series.bars) {
                line class="bar" x1=(short(across(*x))) x2=(short(across(*x))) y1=(short(up(*low))) y2=(short(up(*high))) {}
            }
            @if series.style == Style::Dots || series.points.len() == 1 {
                @for (x, y) in &series.points { circle class="dot" cx=(short(across(*x))) cy=(short(up(*y))) r="2.8" {} }
            }
        }
    }
}

/// The names of series with their colours, `(class, name)`.
pub(super) fn legend<'a>(series: impl Iterator<Item = (String, &'a str)>) -> Markup {
    html! {
        ul class="legend" {
            @for (class, name) in series {
                li class=(class) {
                    svg class="swatch" viewBox="0 0 18 8" aria-hidden="true" { line class="line" x1="0" x2="18" y1="4" y2="4" {} }
                    (super::text::short(name, 60))
                }
            }
        }
    }
}

/// Two decimals at most: a tenth of a pixel is nothing.
pub(super) fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The class of the `n`-th entry's colour; baselines share the quiet ones.
pub(super) fn colour(n: usize) -> String {
    format!("c{}", n % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::even(0.0, 1.0, "", |at| format!("{at:.1}"));
        let names: Vec<&str> = axis.ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let steps = Axis::even(0.0, 1_234.0, "", |at| format!("{at}"));
        assert!(steps.ticks.len() >= 3 && steps.ticks.iter().all(|(at, _)| *at <= 1_234.0));
        assert!(Axis::even(5.0, 5.0, "", |at| format!("{at}")).range.1 > 5.0, "an empty range is widened");
    }

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
