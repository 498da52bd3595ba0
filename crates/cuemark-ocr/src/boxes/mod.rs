//! From a map of where text is to boxes around its lines, in reading order.
//!
//! Differentiable Binarization (Liao et al., AAAI 2020) learns a map of lines that are thinner than they are, so that neighbours stay
//! apart. What is above a threshold is grouped, each group gets the smallest rectangle around it, and the rectangle grows back by
//! what was taken off.

mod grow;
mod order;
mod rectangle;
mod regions;

use rectangle::Rectangle;

/// Four corners of a box in **pixels**, clockwise from the one at the top left.
pub(crate) type Corners = [[f32; 2]; 4];

/// A pixel belongs to text above this.
pub(crate) const THRESHOLD: f32 = 0.3;
/// A box holds text when its mean is at least this.
const BOX_THRESHOLD: f64 = 0.5;
/// Regions that are looked at.
const MOST_REGIONS: usize = 1_000;
/// The least short side of a region, and of a box that has grown, in pixels of the map.
const LEAST_SIDE: f32 = 3.0;
const LEAST_GROWN_SIDE: f32 = 5.0;
/// Sides of a box in the picture are longer than this.
const LEAST_SHOWN_SIDE: f32 = 3.0;

/// For each pixel, how likely it belongs to text: between 0 and 1, line by line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Map {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) values: Vec<f32>,
}

/// The boxes of a map, in pixels of a picture of `width` × `height`.
pub(crate) fn boxes(map: &Map, width: usize, height: usize) -> Vec<Corners> {
    let mut found = Vec::new();
    for hull in regions::hulls(map).into_iter().take(MOST_REGIONS) {
        let Some(narrow) = rectangle::around(&hull).filter(|narrow| narrow.short_side >= LEAST_SIDE) else { continue };
        if mean_within(map, &narrow.corners) < BOX_THRESHOLD {
            continue;
        }
        let Some(whole) = grow::grown(&narrow.corners).as_deref().and_then(rectangle::around) else { continue };
        if whole.short_side >= LEAST_GROWN_SIDE {
            found.extend(shown(&whole, map, width, height));
        }
    }
    order::reading_order(found)
}

/// A rectangle of the map in whole pixels of the picture; `None` when there it is next to nothing.
fn shown(rectangle: &Rectangle, map: &Map, width: usize, height: usize) -> Option<Corners> {
    let place = |at: f32, of: usize, size: usize| {
        let exact = (at / of as f32 * size as f32).round_ties_even();
        exact.clamp(0.0, size as f32).min(size as f32 - 1.0)
    };
    let corners = rectangle.corners.map(|[x, y]| [place(x, map.width, width), place(y, map.height, height)]);
    let corners = order::clockwise(corners);
    let long = |[a, b]: [usize; 2]| distance(corners[a], corners[b]).trunc() > LEAST_SHOWN_SIDE;
    (long([0, 1]) && long([0, 3])).then_some(corners)
}

/// Between two points.
pub(crate) fn distance(a: [f32; 2], b: [f32; 2]) -> f32 {
    let [x, y] = [a[0] - b[0], a[1] - b[1]];
    (x * x + y * y).sqrt()
}

/// The mean of the map over a box whose corners are cut to whole pixels.
fn mean_within(map: &Map, corners: &Corners) -> f64 {
    let bound = |axis: usize, size: usize| {
        let along = corners.map(|corner| corner[axis]);
        let low = along.into_iter().fold(f32::INFINITY, f32::min).floor();
        let high = along.into_iter().fold(f32::NEG_INFINITY, f32::max).ceil();
        [low, high].map(|edge| (edge.max(0.0) as usize).min(size - 1))
    };
    let ([left, right], [top, bottom]) = (bound(0, map.width), bound(1, map.height));
    let whole = corners.map(|[x, y]| [f64::from((x - left as f32).trunc()), f64::from((y - top as f32).trunc())]);
    let (mut sum, mut count) = (0.0, 0_usize);
    for y in top..=bottom {
        let Some([from, to]) = crossing(&whole, (y - top) as f64) else { continue };
        let from = left + (from.round().max(0.0) as usize);
        let to = (left + to.round().max(0.0) as usize).min(right);
        let Some(line) = map.values.get(y * map.width + from..=y * map.width + to).filter(|_| from <= to) else {
            continue;
        };
        sum += line.iter().map(|value| f64::from(*value)).sum::<f64>();
        count += line.len();
    }
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// From where to where a line at height `y` runs through a convex polygon.
fn crossing(polygon: &[[f64; 2]; 4], y: f64) -> Option<[f64; 2]> {
    let mut span: Option<[f64; 2]> = None;
    let mut meet = |x: f64| span = Some(span.map_or([x, x], |[low, high]| [low.min(x), high.max(x)]));
    for (index, a) in polygon.iter().enumerate() {
        let b = polygon[(index + 1) % 4];
        if a[1] == y {
            meet(a[0]);
        }
        if (a[1] < y) != (b[1] < y) {
            meet(a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]));
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map with `value` in a rectangle of pixels, both ends included.
    fn map(width: usize, height: usize, rectangles: &[([usize; 2], [usize; 2], f32)]) -> Map {
        let mut values = vec![0.0; width * height];
        for ([left, top], [right, bottom], value) in rectangles {
            for y in *top..=*bottom {
                values[y * width + left..=y * width + right].fill(*value);
            }
        }
        Map { width, height, values }
    }

    #[test]
    fn a_line_grows_by_its_area_over_its_outline_on_each_side() {
        // The group covers 20 to 81 by 30 to 41, a pixel more to the right and below than the map says. Its corners enclose
        // 61 × 11, which grows by 61 · 11 · 1.6 / 144 = 7.46 pixels, and rounding puts the edges on whole ones.
        let found = boxes(&map(200, 100, &[([20, 30], [80, 40], 0.9)]), 200, 100);
        assert_eq!(found, [[[13.0, 23.0], [88.0, 23.0], [88.0, 48.0], [13.0, 48.0]]]);
    }

    #[test]
    fn faint_groups_and_specks_hold_no_text() {
        assert!(boxes(&map(200, 100, &[([20, 30], [80, 40], 0.4)]), 200, 100).is_empty());
        assert!(boxes(&map(200, 100, &[([20, 30], [21, 31], 0.9)]), 200, 100).is_empty());
        assert!(boxes(&map(64, 64, &[]), 64, 64).is_empty());
    }

    #[test]
    fn boxes_are_read_line_by_line_and_from_the_left() {
        let lines = [([110, 31], [160, 41], 0.9), ([20, 30], [80, 40], 0.9), ([20, 70], [80, 80], 0.9)];
        let found = boxes(&map(200, 120, &lines), 200, 120);
        let starts: Vec<f32> = found.iter().map(|corners| corners[0][0]).collect();
        assert_eq!(found.len(), 3);
        assert!(starts[0] < starts[1] && found[2][0][1] > found[1][0][1], "{found:?}");
    }

    #[test]
    fn boxes_are_told_in_pixels_of_the_picture() {
        let found = boxes(&map(200, 100, &[([20, 30], [80, 40], 0.9)]), 100, 50);
        assert_eq!(found, [[[6.0, 12.0], [44.0, 12.0], [44.0, 24.0], [6.0, 24.0]]]); // 6.5 and 11.5 to even
    }

    #[test]
    fn a_map_that_is_text_all_over_gives_one_box_inside_the_picture() {
        let found = boxes(&map(64, 64, &[([0, 0], [63, 63], 1.0)]), 64, 64);
        assert_eq!(found, [[[0.0, 0.0], [63.0, 0.0], [63.0, 63.0], [0.0, 63.0]]]);
    }

    #[test]
    fn no_map_makes_it_panic() {
        let mut state = 1_u32;
        for (width, height) in [(1, 1), (1, 40), (40, 1), (33, 17), (64, 64)] {
            for _ in 0..20 {
                let noise = (0..width * height).map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if state >> 28 == 0 { f32::NAN } else { (state >> 8) as f32 / (1 << 24) as f32 * 3.0 - 1.0 }
                });
                let map = Map { width, height, values: noise.collect() };
                for [x, y] in boxes(&map, 7, 1000).into_iter().flatten() {
                    assert!((0.0..7.0).contains(&x) && (0.0..1000.0).contains(&y));
                }
            }
        }
    }
}
