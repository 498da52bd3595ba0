//! A rectangle that grows back to the text it was shrunk from.
//!
//! The reference offsets polygons with Clipper, on whole pixels and with round corners; what matters of the result is its convex hull.
//! Each side moves out by the same distance, each corner becomes an arc of so many chords that none strays from it by more than a
//! quarter of a pixel, and all points are rounded.

use std::f64::consts::{PI, TAU};

use super::Corners;
use super::rectangle::convex_hull;

/// Area over outline, times this, is how far each side moves out.
const RATIO: f64 = 1.6;
/// How far a chord may stray from its arc, in pixels.
const STRAY: f64 = 0.25;

/// The convex hull of what `corners` grows to; `None` where it has no area.
pub(super) fn grown(corners: &Corners) -> Option<Vec<[i64; 2]>> {
    let exact = corners.map(|[x, y]| [f64::from(x), f64::from(y)]);
    let distance = doubled_area(&exact).abs() / 2.0 * RATIO / outline(&exact);
    if !(distance.is_finite() && distance > 0.0) {
        return None;
    }
    let mut whole: Vec<[f64; 2]> = exact.iter().map(|point| point.map(f64::trunc)).collect();
    whole.dedup();
    if whole.first() == whole.last() {
        whole.pop();
    }
    if whole.len() < 3 {
        return None;
    }
    if doubled_area(&whole) < 0.0 {
        whole.reverse();
    }
    let stray = STRAY.min(distance * STRAY);
    let chords = (PI / (1.0 - stray / distance).acos()).min(distance * PI);
    let count = whole.len();
    let normals: Vec<[f64; 2]> = (0..count).map(|at| normal(whole[at], whole[(at + 1) % count])).collect();
    let mut points = Vec::new();
    for at in 0..count {
        let (corner, before, after) = (whole[at], normals[(at + count - 1) % count], normals[at]);
        let (sine, cosine) = (before[0] * after[1] - after[0] * before[1], before[0] * after[0] + before[1] * after[1]);
        let out = |[x, y]: [f64; 2]| [rounded(corner[0] + x * distance), rounded(corner[1] + y * distance)];
        let steps = ((chords / TAU * sine.atan2(cosine).abs()).round() as usize).max(1);
        let (turn_sine, turn_cosine) = (TAU / chords).sin_cos();
        let mut direction = before;
        for _ in 0..steps {
            points.push(out(direction));
            let [x, y] = direction;
            direction = [x * turn_cosine - y * turn_sine, x * turn_sine + y * turn_cosine];
        }
        points.push(out(after));
    }
    Some(convex_hull(points))
}

/// Away from zero at a half.
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// Of length one, outwards where corners go around clockwise as seen on the screen.
fn normal(from: [f64; 2], to: [f64; 2]) -> [f64; 2] {
    let [x, y] = [to[0] - from[0], to[1] - from[1]];
    let length = x.hypot(y);
    [y / length, -x / length]
}

fn doubled_area(points: &[[f64; 2]]) -> f64 {
    let pair = |at: usize| (points[at], points[(at + 1) % points.len()]);
    (0..points.len()).map(pair).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum()
}

fn outline(points: &[[f64; 2]]) -> f64 {
    let pair = |at: usize| (points[at], points[(at + 1) % points.len()]);
    (0..points.len()).map(pair).map(|(a, b)| (b[0] - a[0]).hypot(b[1] - a[1])).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_moves_out_by_area_over_outline() {
        // 100 × 20 grows by 2000 · 1.6 / 240 = 13.33.
        let hull = grown(&[[10.0, 10.0], [110.0, 10.0], [110.0, 30.0], [10.0, 30.0]]).unwrap();
        let along = |axis: usize| {
            let values = hull.iter().map(|point| point[axis]);
            (values.clone().min().unwrap(), values.max().unwrap())
        };
        assert_eq!((along(0), along(1)), ((-3, 123), (-3, 43)));
        // Its corners are round: (-3, -3) itself is outside.
        assert!(hull.len() > 8 && !hull.contains(&[-3, -3]), "{hull:?}");
    }

    #[test]
    fn what_has_no_area_does_not_grow() {
        assert!(grown(&[[1.0, 1.0]; 4]).is_none());
        assert!(grown(&[[1.0, 1.0], [9.0, 1.0], [9.0, 1.0], [1.0, 1.0]]).is_none());
        assert!(grown(&[[f32::NAN, 1.0], [9.0, 1.0], [9.0, 5.0], [1.0, 5.0]]).is_none());
    }
}
