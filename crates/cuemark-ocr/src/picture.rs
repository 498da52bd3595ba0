//! Pixels: their order, their size, and what networks want of them.

use crate::{OcrError, Result};

/// A picture: red, green and blue of each pixel, line by line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) rgb: Vec<u8>,
}

/// Weights of a resampling are whole numbers of this many parts, as in OpenCV: the networks were tuned on its pictures, and a
/// character at the edge of legibility turns on such roundings.
const PARTS: f32 = 2048.0;

/// One new pixel along one axis: the two old ones it lies between, and their weights.
struct Between {
    at: [usize; 2],
    weights: [i32; 2],
}

impl Picture {
    /// Holds `rgb` to its size.
    pub(crate) fn new(rgb: &[u8], width: usize, height: usize) -> Result<Self> {
        let wanted = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(3));
        if wanted != Some(rgb.len()) || rgb.is_empty() {
            let wanted = wanted.filter(|bytes| *bytes > 0).map_or_else(|| "no".to_owned(), |bytes| bytes.to_string());
            return Err(OcrError::Picture { width, height, wanted, bytes: rgb.len() });
        }
        Ok(Self { width, height, rgb: rgb.to_vec() })
    }

    /// Of no colour.
    pub(crate) fn black(width: usize, height: usize) -> Self {
        Self { width, height, rgb: vec![0; 3 * width * height] }
    }

    /// Straight lines between pixels, rounded as OpenCV rounds them; the mean of four where it becomes half as large.
    pub(crate) fn resized(&self, width: usize, height: usize) -> Self {
        if (width, height) == (self.width, self.height) {
            return self.clone();
        }
        if (2 * width, 2 * height) == (self.width, self.height) {
            return self.halved();
        }
        let (columns, rows) = (between(self.width, width), between(self.height, height));
        let mut new = Self::black(width, height);
        // Each old line is stretched once, although two new ones may want it.
        let mut stretched: [(usize, Vec<i32>); 2] = [(usize::MAX, Vec::new()), (usize::MAX, Vec::new())];
        for (row, line) in rows.iter().zip(new.rgb.chunks_exact_mut(3 * width)) {
            if stretched[1].0 == row.at[0] {
                stretched.swap(0, 1);
            }
            for (kept, &wanted) in stretched.iter_mut().zip(&row.at) {
                if kept.0 != wanted {
                    *kept = (wanted, self.stretched_line(wanted, &columns));
                }
            }
            let [above, below] = [&stretched[0].1, &stretched[1].1];
            for ((pixel, above), below) in line.iter_mut().zip(above).zip(below) {
                let sum = ((row.weights[0] * (above >> 4)) >> 16) + ((row.weights[1] * (below >> 4)) >> 16);
                *pixel = ((sum + 2) >> 2).clamp(0, 255) as u8;
            }
        }
        new
    }

    /// One line at the new width, in parts of [`PARTS`].
    fn stretched_line(&self, row: usize, columns: &[Between]) -> Vec<i32> {
        let line = &self.rgb[3 * row * self.width..3 * (row + 1) * self.width];
        let mut wide = Vec::with_capacity(3 * columns.len());
        for column in columns {
            let [left, right] = column.at.map(|at| &line[3 * at..3 * at + 3]);
            for colour in 0..3 {
                wide.push(i32::from(left[colour]) * column.weights[0] + i32::from(right[colour]) * column.weights[1]);
            }
        }
        wide
    }

    fn halved(&self) -> Self {
        let (width, height) = (self.width / 2, self.height / 2);
        let mut new = Self::black(width, height);
        for y in 0..height {
            for x in 0..width {
                for colour in 0..3 {
                    let old = |dx: usize, dy: usize| {
                        u32::from(self.rgb[3 * ((2 * y + dy) * self.width + 2 * x + dx) + colour])
                    };
                    let sum = old(0, 0) + old(1, 0) + old(0, 1) + old(1, 1);
                    new.rgb[3 * (y * width + x) + colour] = ((sum + 2) >> 2) as u8;
                }
            }
        }
        new
    }

    /// With so many black lines above and below.
    pub(crate) fn with_bars(&self, lines: usize) -> Self {
        let bar = vec![0; 3 * self.width * lines];
        Self { width: self.width, height: self.height + 2 * lines, rgb: [&bar[..], &self.rgb, &bar].concat() }
    }

    /// A quarter turn to the left.
    pub(crate) fn turned_left(&self) -> Self {
        let mut new = Self::black(self.height, self.width);
        for y in 0..self.height {
            for x in 0..self.width {
                let (from, to) = (3 * (y * self.width + x), 3 * ((self.width - 1 - x) * self.height + y));
                new.rgb[to..to + 3].copy_from_slice(&self.rgb[from..from + 3]);
            }
        }
        new
    }

    /// Half a turn.
    pub(crate) fn upside_down(&self) -> Self {
        let rgb = self.rgb.chunks_exact(3).rev().flatten().copied().collect();
        Self { width: self.width, height: self.height, rgb }
    }

    /// Writes it as planes of blue, green and red between -1 and 1 into the left of planes that are `stride` pixels wide.
    pub(crate) fn fill_planes(&self, planes: &mut [f32], stride: usize) {
        let size = stride * self.height;
        let levels: [f32; 256] = std::array::from_fn(|level| (level as f32 / 255.0 - 0.5) / 0.5);
        for (plane, colour) in planes.chunks_exact_mut(size).zip([2, 1, 0]) {
            for (line, pixels) in plane.chunks_exact_mut(stride).zip(self.rgb.chunks_exact(3 * self.width)) {
                for (value, pixel) in line.iter_mut().zip(pixels.chunks_exact(3)) {
                    *value = levels[usize::from(pixel[colour])];
                }
            }
        }
    }
}

/// Where each of `new` pixels lies among `old` ones.
fn between(old: usize, new: usize) -> Vec<Between> {
    let scale = 1.0 / (new as f64 / old as f64);
    let place = |at: usize| {
        let exact = ((at as f64 + 0.5) * scale - 0.5) as f32;
        let whole = exact.floor();
        let (whole, part) = match whole {
            _ if whole < 0.0 => (0, 0.0),
            _ if whole as usize >= old - 1 => (old - 1, 0.0),
            _ => (whole as usize, exact - whole),
        };
        let weights = [1.0 - part, part].map(|weight| (weight * PARTS).round_ties_even() as i32);
        Between { at: [whole, (whole + 1).min(old - 1)], weights }
    };
    (0..new).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(values: &[u8], width: usize) -> Picture {
        let rgb: Vec<u8> = values.iter().flat_map(|value| [*value; 3]).collect();
        Picture::new(&rgb, width, values.len() / width).unwrap()
    }

    fn greys(picture: &Picture) -> Vec<u8> {
        picture.rgb.chunks_exact(3).map(|pixel| pixel[0]).collect()
    }

    #[test]
    fn enlarging_goes_in_straight_lines_from_pixel_to_pixel() {
        // Centres of four new pixels lie at -0.25, 0.25, 0.75, 1.25 of the old ones.
        assert_eq!(greys(&grey(&[0, 100], 2).resized(4, 1)), [0, 25, 75, 100]);
    }

    #[test]
    fn halving_takes_the_mean_of_four() {
        assert_eq!(greys(&grey(&[0, 10, 20, 31], 2).resized(1, 1)), [15]); // 15.25
    }

    #[test]
    fn a_quarter_turn_to_the_left_puts_the_right_column_on_top() {
        let turned = grey(&[1, 2, 3, 4, 5, 6], 3).turned_left();
        assert_eq!((turned.width, turned.height), (2, 3));
        assert_eq!(greys(&turned), [3, 6, 2, 5, 1, 4]);
        assert_eq!(greys(&grey(&[1, 2, 3, 4], 2).upside_down()), [4, 3, 2, 1]);
    }

    #[test]
    fn planes_are_blue_green_red_and_end_where_the_picture_ends() {
        let mut planes = vec![0.0; 6];
        Picture::new(&[0, 255, 51], 1, 1).unwrap().fill_planes(&mut planes, 2);
        assert_eq!(planes, [-0.6, 0.0, 1.0, 0.0, -1.0, 0.0]);
    }

    #[test]
    fn bytes_that_are_no_picture_of_that_size_are_refused() {
        for (bytes, width, height) in [(3, 2, 1), (0, 0, 5), (3, usize::MAX, usize::MAX)] {
            let error = Picture::new(&vec![0; bytes], width, height).unwrap_err();
            assert!(error.to_string().contains(&format!("and {bytes} were given")), "{error}");
        }
    }
}
