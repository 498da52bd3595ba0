//! The picture: a field for each kind of work, both axes by powers of ten.

use cuemark_chart::{Axis, Frame, Room, Series, Style, drawn, picture};
use maud::{Markup, html};

use super::recorded::{Kind, Point};

/// Width and height of a field.
const FIELD: (f64, f64) = (330.0, 250.0);
const ROOM: Room = Room { left: 62.0, top: 34.0, right: 14.0, bottom: 44.0 };
/// Fields beside each other.
const COLUMNS: usize = 3;
/// For the heading and the legend.
const HEAD: f64 = 46.0;

/// An SVG file of what everything costs as it grows.
pub(super) fn draw(kinds: &[Kind]) -> String {
    let kinds: Vec<&Kind> = kinds.iter().filter(|kind| !kind.points.is_empty()).collect();
    let rows = kinds.len().div_ceil(COLUMNS).max(1);
    let size = (FIELD.0 * COLUMNS as f64, HEAD + FIELD.1 * rows as f64);
    let content = html! {
        text class="heading" x="16" y="24" { "Seconds against size: cuemark (blue) and the peer (orange, broken)" }
        @for (place, kind) in kinds.iter().enumerate() {
            (field(kind, (FIELD.0 * (place % COLUMNS) as f64, HEAD + FIELD.1 * (place / COLUMNS) as f64)))
        }
    };
    picture("What evaluation, training, extraction, indexing and search cost as they grow", size, &content)
}

fn field(kind: &Kind, corner: (f64, f64)) -> Markup {
    let seconds = kind.points.iter().flat_map(|point| [point.ours, point.peers]).flatten();
    let x = powers(kind.points.iter().map(|point| point.size), kind.size, &|power| ten_to(power));
    let y = powers(seconds, "", &|power| in_seconds(power));
    let frame = Frame { corner, size: FIELD, room: ROOM, x: &x, y: &y };
    // A line for each recorded result: another machine, or another kind of input, is another line.
    let mut sources: Vec<(&str, bool)> =
        kind.points.iter().map(|point| (point.source.as_str(), point.peers.is_some())).collect();
    sources.sort_unstable();
    sources.dedup();
    let all: Vec<Series> = sources
        .into_iter()
        .flat_map(|of| {
            let same = |point: &&Point| (point.source.as_str(), point.peers.is_some()) == of;
            let points: Vec<&Point> = kind.points.iter().filter(same).collect();
            let peers = series(&points, "c2", Style::Dashed, |point| point.peers);
            [peers, series(&points, "c1", Style::Dots, |point| point.ours)]
        })
        .collect();
    html! {
        text class="title" x=(corner.0 + ROOM.left) y=(corner.1 + 20.0) { (kind.name) " (peer: " (kind.peer) ")" }
        (frame.axes())
        @for one in &all { (drawn(one, &frame)) }
    }
}

fn series(points: &[&Point], class: &str, style: Style, seconds: impl Fn(&Point) -> Option<f64>) -> Series {
    let mut points: Vec<(f64, f64)> =
        points.iter().filter_map(|point| Some((point.size.log10(), seconds(point)?.log10()))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Series { class: class.to_owned(), points, bars: Vec::new(), style }
}

/// An axis over the powers of ten that hold all of `values`.
fn powers(values: impl Iterator<Item = f64>, title: &str, label: &dyn Fn(i32) -> String) -> Axis {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| *value > 0.0) {
        low = low.min(value.log10());
        high = high.max(value.log10());
    }
    let (low, high) = if low <= high { ((low - 0.1).floor(), (high + 0.1).ceil()) } else { (0.0, 1.0) };
    let ticks = (low as i32..=high as i32).map(|power| (f64::from(power), label(power))).collect();
    Axis { range: (low, high), ticks, title: title.to_owned() }
}

fn ten_to(power: i32) -> String {
    if (0..4).contains(&power) { 10i32.pow(power.unsigned_abs()).to_string() } else { format!("10^{power}") }
}

fn in_seconds(power: i32) -> String {
    match power {
        ..-3 => format!("{} µs", 10f64.powi(power + 6)),
        -3..0 => format!("{} ms", 10f64.powi(power + 3)),
        _ => format!("{} s", 10f64.powi(power)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_drawn_for_every_kind_that_has_points() {
        let point = |size: f64, ours: f64| Point {
            what: "w".into(),
            size,
            ours: Some(ours),
            peers: Some(2.0 * ours),
            source: "s".into(),
            machine: "m".into(),
        };
        let full =
            Kind { name: "search", size: "moments", peer: "p", points: vec![point(1e4, 1e-5), point(1e6, 1e-4)] };
        let empty = Kind { name: "nothing", size: "n", peer: "p", points: Vec::new() };
        let svg = draw(&[full, empty]);
        assert!(
            svg.contains("search") && !svg.contains("nothing") && svg.contains("10^6") && svg.contains("100 µs"),
            "{svg}"
        );
        assert_eq!(svg.matches("<polyline").count(), 2);
    }
}
