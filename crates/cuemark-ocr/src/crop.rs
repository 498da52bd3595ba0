//! A box cut out of its picture and laid straight.

use crate::boxes::{Corners, distance};
use crate::picture::Picture;

/// A box this much taller than wide is a line that stands on its side.
const STANDING: f64 = 1.5;
/// The shape of the cubic, as OpenCV has it.
const CUBIC: f64 = -0.75;

/// What is inside `corners`, as wide and high as the box is long; `None` when that is nothing.
pub(crate) fn cropped(picture: &Picture, corners: &Corners) -> Option<Picture> {
    let [a, b, c, d] = *corners;
    let width = distance(a, b).max(distance(c, d)) as usize;
    let height = distance(a, d).max(distance(b, c)) as usize;
    if width == 0 || height == 0 {
        return None;
    }
    let projection = Projection::onto(corners, width, height)?;
    let mut cut = Picture::black(width, height);
    for y in 0..height {
        for x in 0..width {
            let [from_x, from_y] = projection.place(x as f64, y as f64);
            let at = 3 * (y * width + x);
            cut.rgb[at..at + 3].copy_from_slice(&sampled(picture, from_x, from_y));
        }
    }
    let standing = height as f64 / width as f64 >= STANDING;
    Some(if standing { cut.turned_left() } else { cut })
}

/// The projective map from a rectangle to four corners: `(a x + b y + c, d x + e y + f) / (g x + h y + 1)`.
struct Projection([f64; 8]);

impl Projection {
    /// From `[0, width] × [0, height]`; `None` when the corners lie on one line.
    ///
    /// Solved for the unit square as in Heckbert, "Fundamentals of Texture Mapping and Image Warping" (1989), section 2.2.3.
    fn onto(corners: &Corners, width: usize, height: usize) -> Option<Self> {
        let [p0, p1, p2, p3] = corners.map(|[x, y]| [f64::from(x), f64::from(y)]);
        let bend = |axis: usize| p0[axis] - p1[axis] + p2[axis] - p3[axis];
        let (side, other) = ([p1[0] - p2[0], p1[1] - p2[1]], [p3[0] - p2[0], p3[1] - p2[1]]);
        let below = side[0] * other[1] - other[0] * side[1];
        if below == 0.0 {
            return None;
        }
        let g = (bend(0) * other[1] - other[0] * bend(1)) / below;
        let h = (side[0] * bend(1) - bend(0) * side[1]) / below;
        let (width, height) = (width as f64, height as f64);
        let across = |axis: usize| (p1[axis] - p0[axis] + g * p1[axis]) / width;
        let down = |axis: usize| (p3[axis] - p0[axis] + h * p3[axis]) / height;
        Some(Self([across(0), down(0), p0[0], across(1), down(1), p0[1], g / width, h / height]))
    }

    fn place(&self, x: f64, y: f64) -> [f64; 2] {
        let [a, b, c, d, e, f, g, h] = self.0;
        let below = g * x + h * y + 1.0;
        [(a * x + b * y + c) / below, (d * x + e * y + f) / below]
    }
}

/// The colour at a place between pixels, by cubics; beyond the edge it goes on as it is there.
fn sampled(picture: &Picture, x: f64, y: f64) -> [u8; 3] {
    let (whole_x, whole_y) = (x.floor(), y.floor());
    let (weights_x, weights_y) = (cubic(x - whole_x), cubic(y - whole_y));
    let clamp = |whole: f64, step: usize, size: usize| {
        (whole as i64).saturating_add(step as i64 - 1).clamp(0, size as i64 - 1) as usize
    };
    let mut sums = [0.0; 3];
    for (row, weight_y) in weights_y.iter().enumerate() {
        let line = 3 * clamp(whole_y, row, picture.height) * picture.width;
        for (column, weight_x) in weights_x.iter().enumerate() {
            let at = line + 3 * clamp(whole_x, column, picture.width);
            for (sum, colour) in sums.iter_mut().zip(&picture.rgb[at..at + 3]) {
                *sum += weight_x * weight_y * f64::from(*colour);
            }
        }
    }
    sums.map(|sum| sum.round_ties_even().clamp(0.0, 255.0) as u8)
}

/// Weights of the pixels before, at, after and beyond, for a place `x` of the way from the second to the third.
fn cubic(x: f64) -> [f64; 4] {
    let far = |x: f64| ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC;
    let near = |x: f64| ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0;
    let first = [far(x + 1.0), near(x), near(1.0 - x)];
    [first[0], first[1], first[2], 1.0 - first.iter().sum::<f64>()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red says the column, green the line.
    fn picture(width: usize, height: usize) -> Picture {
        let rgb: Vec<u8> = (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, 7])).collect();
        Picture::new(&rgb, width, height).unwrap()
    }

    #[test]
    fn an_upright_box_is_cut_pixel_for_pixel() {
        let cut = cropped(&picture(60, 50), &[[10.0, 20.0], [40.0, 20.0], [40.0, 30.0], [10.0, 30.0]]).unwrap();
        assert_eq!((cut.width, cut.height), (30, 10));
        assert_eq!(cut.rgb[..6], [10, 20, 7, 11, 20, 7]);
        assert_eq!(cut.rgb[3 * 30 * 9 + 3 * 29..], [39, 29, 7]);
    }

    #[test]
    fn a_slope_is_laid_straight() {
        // 50 long, rising 3 for every 4; its first line runs along the upper side.
        let cut = cropped(&picture(80, 80), &[[10.0, 40.0], [50.0, 10.0], [56.0, 18.0], [16.0, 48.0]]).unwrap();
        assert_eq!((cut.width, cut.height), (50, 10));
        // 25 steps along the side: (10 + 25 · 0.8, 40 - 25 · 0.6).
        assert_eq!(cut.rgb[3 * 25..3 * 26], [30, 25, 7]);
    }

    #[test]
    fn a_standing_line_is_laid_down() {
        let cut = cropped(&picture(60, 60), &[[10.0, 10.0], [20.0, 10.0], [20.0, 50.0], [10.0, 50.0]]).unwrap();
        assert_eq!((cut.width, cut.height), (40, 10));
        assert_eq!(cut.rgb[..3], [19, 10, 7]); // what was at the upper right
    }

    #[test]
    fn a_box_without_inside_is_left_out() {
        assert!(cropped(&picture(9, 9), &[[1.0, 1.0], [1.0, 1.0], [5.0, 5.0], [5.0, 5.0]]).is_none());
        assert!(cropped(&picture(9, 9), &[[1.0, 1.0], [3.0, 3.0], [5.0, 5.0], [7.0, 7.0]]).is_none());
    }
}
