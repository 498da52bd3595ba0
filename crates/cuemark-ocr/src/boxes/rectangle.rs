//! The smallest rectangle around points.

use super::Corners;

/// A rectangle at any angle.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rectangle {
    /// The two on the left first, told apart by height, as if it stood nearly upright.
    pub(super) corners: Corners,
    pub(super) short_side: f32,
}

/// The corners of the convex hull, in order around it; one or two of points that lie on a spot or a line.
pub(super) fn convex_hull(mut points: Vec<[i64; 2]>) -> Vec<[i64; 2]> {
    points.sort_unstable();
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let half = |points: &mut dyn Iterator<Item = [i64; 2]>| {
        let mut hull: Vec<[i64; 2]> = Vec::new();
        for point in points {
            while let [.., a, b] = hull.as_slice()
                && (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]) <= 0
            {
                hull.pop();
            }
            hull.push(point);
        }
        hull.pop();
        hull
    };
    let mut hull = half(&mut points.iter().copied());
    hull.extend(half(&mut points.iter().rev().copied()));
    hull
}

/// The rectangle of least area around a convex hull; one of its sides lies along a side of the hull. `None` of no points.
pub(super) fn around(hull: &[[i64; 2]]) -> Option<Rectangle> {
    let hull: Vec<[f64; 2]> = hull.iter().map(|point| point.map(|value| value as f64)).collect();
    let origin = *hull.first()?;
    let mut best: Option<(f64, [f64; 2], [f64; 4])> = None;
    for (index, a) in hull.iter().enumerate() {
        let b = hull[(index + 1) % hull.len()];
        let [x, y] = [b[0] - a[0], b[1] - a[1]];
        let length = x.hypot(y);
        // A single point has no side to lie along.
        let along = if length > 0.0 { [x / length, y / length] } else { [1.0, 0.0] };
        let mut extent = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY];
        for point in &hull {
            let [x, y] = [point[0] - origin[0], point[1] - origin[1]];
            let (u, v) = (x * along[0] + y * along[1], y * along[0] - x * along[1]);
            extent = [extent[0].min(u), extent[1].max(u), extent[2].min(v), extent[3].max(v)];
        }
        let area = (extent[1] - extent[0]) * (extent[3] - extent[2]);
        if best.is_none_or(|(least, ..)| area < least) {
            best = Some((area, along, extent));
        }
    }
    let (_, along, [left, right, low, high]) = best?;
    let corner = |u: f64, v: f64| {
        [(origin[0] + u * along[0] - v * along[1]) as f32, (origin[1] + u * along[1] + v * along[0]) as f32]
    };
    let corners = [corner(left, low), corner(right, low), corner(right, high), corner(left, high)];
    let short_side = (right - left).min(high - low) as f32;
    Some(Rectangle { corners: upright(corners), short_side })
}

/// The upper of the two leftmost, the upper and the lower of the two rightmost, the lower of the leftmost.
fn upright(mut corners: Corners) -> Corners {
    corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [mut a, mut d, mut b, mut c] = corners;
    if d[1] <= a[1] {
        std::mem::swap(&mut a, &mut d);
    }
    if c[1] <= b[1] {
        std::mem::swap(&mut b, &mut c);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hull_of_a_filled_square_is_its_corners() {
        let points = (0..5).flat_map(|x| (0..5).map(move |y| [x, y])).collect();
        assert_eq!(convex_hull(points), [[0, 0], [4, 0], [4, 4], [0, 4]]);
        assert_eq!(convex_hull(vec![[0, 0], [2, 2], [1, 1]]), [[0, 0], [2, 2]]);
        assert_eq!(convex_hull(vec![[3, 3]; 9]), [[3, 3]]);
    }

    #[test]
    fn a_turned_square_gets_a_turned_rectangle() {
        let found = around(&[[0, 5], [5, 0], [10, 5], [5, 10]]).unwrap();
        assert!((found.short_side - 50_f32.sqrt()).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn the_rectangle_around_a_slope_follows_it() {
        // A bar of 40 by 10 that rises 3 for every 4 to the right.
        let found = around(&convex_hull(vec![[0, 24], [32, 0], [38, 8], [6, 32]])).unwrap();
        assert!((found.short_side - 10.0).abs() < 1e-5, "{found:?}");
        let close = |a: [f32; 2], b: [f32; 2]| super::super::distance(a, b) < 1e-4;
        let wanted = [[6.0, 32.0], [32.0, 0.0], [38.0, 8.0], [0.0, 24.0]];
        // The two leftmost are (0, 24) and (6, 32): the upper comes first.
        assert!(close(found.corners[0], wanted[3]) && close(found.corners[3], wanted[0]), "{found:?}");
        assert!(close(found.corners[1], wanted[1]) && close(found.corners[2], wanted[2]), "{found:?}");
    }

    #[test]
    fn a_spot_and_a_line_have_no_short_side() {
        assert_eq!(around(&[[3, 4]]).unwrap().short_side, 0.0);
        assert_eq!(around(&[[3, 4], [9, 4]]).unwrap().short_side, 0.0);
        assert!(around(&[]).is_none());
    }
}
