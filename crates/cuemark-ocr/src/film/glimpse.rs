//! A small picture, by which is seen whether the large one has changed.

use crate::boxes::Corners;

/// Glimpses are about so many pixels wide.
const WIDTH: usize = 320;
/// Changes are looked for in squares of so many pixels of a glimpse.
const SQUARE: usize = 8;
/// A square has changed when its pixels differ by so many levels of 255 on average. Letters that come or go in a square change a
/// quarter of its pixels by a hundred or so; what a codec does to a still picture stays below 4.
const CHANGED: f32 = 8.0;

/// Red, green and blue of a picture that was shrunk by a whole number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glimpse {
    width: usize,
    height: usize,
    by: usize,
    rgb: Vec<u8>,
}

impl Glimpse {
    /// Of a picture of `width` × `height`.
    pub(super) fn of(rgb: &[u8], width: usize, height: usize) -> Self {
        let by = (width / WIDTH).clamp(1, height.max(1));
        let (small_width, small_height) = (width / by, height / by);
        let mut small = Vec::with_capacity(3 * small_width * small_height);
        let mut sums = vec![0_u32; 3 * small_width];
        for lines in rgb.chunks_exact((3 * width * by).max(1)).take(small_height) {
            sums.fill(0);
            for line in lines.chunks_exact(3 * width) {
                for (sums, pixels) in sums.chunks_exact_mut(3).zip(line.chunks_exact(3 * by)) {
                    for pixel in pixels.chunks_exact(3) {
                        sums.iter_mut().zip(pixel).for_each(|(sum, level)| *sum += u32::from(*level));
                    }
                }
            }
            small.extend(sums.iter().map(|sum| (sum / (by * by) as u32) as u8));
        }
        Self { width: small_width, height: small_height, by, rgb: small }
    }

    /// Whether a square of it is another than in `other`, a glimpse of the same film.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.changes(other).any(|changed| changed)
    }

    /// The share of its squares that are others than in `other`, a glimpse of the same film, in 0..1.
    pub(super) fn share_changed(&self, other: &Self) -> f64 {
        let (mut changed, mut all) = (0_usize, 0_usize);
        for one in self.changes(other) {
            changed += usize::from(one);
            all += 1;
        }
        changed as f64 / all.max(1) as f64
    }

    /// Of each square whether it is another than in `other`.
    fn changes<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = bool> + 'a {
        self.changes_within(other, [0, self.width], [0, self.height])
    }

    /// The same of the squares of a rectangle.
    fn changes_within<'a>(
        &'a self,
        other: &'a Self,
        columns: [usize; 2],
        rows: [usize; 2],
    ) -> impl Iterator<Item = bool> + 'a {
        squares(rows)
            .flat_map(move |rows| squares(columns).map(move |columns| self.difference(other, columns, rows) > CHANGED))
    }

    /// Whether a square of what `corners` enclose, in pixels of the large picture, is another than in `other`: a digit of a long line
    /// changes few of its pixels, and all of those that tell it apart.
    pub(super) fn differs_within(&self, other: &Self, corners: &Corners) -> bool {
        let bound = |axis: usize, size: usize| {
            let along = corners.map(|corner| corner[axis].max(0.0) as usize / self.by);
            let low = along.into_iter().min().unwrap_or(0).min(size.saturating_sub(1));
            [low, along.into_iter().max().map_or(0, |high| high + 1).clamp(low + 1, size.max(low + 1))]
        };
        self.changes_within(other, bound(0, self.width), bound(1, self.height)).any(|changed| changed)
    }

    /// The mean difference over a rectangle, in levels.
    fn difference(&self, other: &Self, columns: [usize; 2], rows: [usize; 2]) -> f32 {
        let (mut sum, mut count) = (0_u32, 0_u32);
        for row in rows[0]..rows[1] {
            let range = 3 * (row * self.width + columns[0])..3 * (row * self.width + columns[1]);
            let (Some(ours), Some(theirs)) = (self.rgb.get(range.clone()), other.rgb.get(range)) else { continue };
            sum += ours.iter().zip(theirs).map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>();
            count += ours.len() as u32;
        }
        if count == 0 { 0.0 } else { sum as f32 / count as f32 }
    }
}

/// A stretch cut into squares' sides; the last reaches back over the one before it, so that a few pixels are never judged alone.
fn squares([low, high]: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    (low..high).step_by(SQUARE).map(move |from| {
        let end = (from + SQUARE).min(high);
        [end.saturating_sub(SQUARE).max(low), end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: usize = 640;
    const HIGH: usize = 360;

    fn picture(paint: impl Fn(usize, usize) -> u8) -> Vec<u8> {
        (0..HIGH).flat_map(|y| (0..WIDE).map(move |x| (x, y))).flat_map(|(x, y)| [paint(x, y); 3]).collect()
    }

    #[test]
    fn a_word_in_small_letters_is_seen_to_come_and_a_codecs_noise_is_not() {
        let plain = Glimpse::of(&picture(|_, _| 90), WIDE, HIGH);
        let noise = Glimpse::of(&picture(|x, y| 86 + ((x * 7 + y * 13) % 9) as u8), WIDE, HIGH);
        // Strokes of two pixels, four apart, 12 pixels high: letters of the size of a footnote, forty levels brighter.
        let word =
            |x: usize, y: usize| if (300..340).contains(&x) && (200..212).contains(&y) && x % 6 < 2 { 160 } else { 90 };
        let word = Glimpse::of(&picture(word), WIDE, HIGH);
        assert!(!plain.differs(&plain) && !plain.differs(&noise));
        assert!(plain.differs(&word) && word.differs(&plain));
    }

    #[test]
    fn a_change_elsewhere_leaves_a_line_the_same() {
        let plain = Glimpse::of(&picture(|_, _| 90), WIDE, HIGH);
        let corner = Glimpse::of(&picture(|x, y| if x < 100 && y < 100 { 200 } else { 90 }), WIDE, HIGH);
        let at = |x: f32, y: f32| [[x, y], [x + 80.0, y], [x + 80.0, y + 20.0], [x, y + 20.0]];
        assert!(plain.differs_within(&corner, &at(10.0, 10.0)));
        assert!(!plain.differs_within(&corner, &at(300.0, 300.0)));
        assert!(plain.share_changed(&corner) < 0.1 && plain.share_changed(&plain) == 0.0);
        // Outside of the picture there is nothing to differ.
        assert!(!plain.differs_within(&corner, &at(9e9, -9e9)) || !plain.differs_within(&plain, &at(9e9, -9e9)));
    }

    #[test]
    fn one_digit_of_a_long_line_is_another_line() {
        // Strokes all along a line of 400 pixels, as bright as white letters on black; the last "digit" has its strokes elsewhere.
        let line = |shift: usize| {
            move |x: usize, y: usize| {
                let inside = (100..500).contains(&x) && (300..320).contains(&y);
                let x = if x < 488 { x } else { x + shift };
                if inside && x % 6 < 3 { 240 } else { 10 }
            }
        };
        let [before, same, after] = [0, 0, 3].map(|shift| Glimpse::of(&picture(line(shift)), WIDE, HIGH));
        let whole = [[100.0, 300.0], [500.0, 300.0], [500.0, 320.0], [100.0, 320.0]];
        assert!(!before.differs_within(&same, &whole));
        assert!(before.differs_within(&after, &whole));
    }

    #[test]
    fn pictures_of_one_pixel_and_of_odd_sizes_have_a_glimpse() {
        for (width, height) in [(1, 1), (1, 700), (700, 1), (333, 77), (1283, 719)] {
            let rgb = vec![50; 3 * width * height];
            let bright = vec![90; 3 * width * height];
            let glimpse = Glimpse::of(&rgb, width, height);
            assert!(glimpse.differs(&Glimpse::of(&bright, width, height)), "{width} x {height}");
            assert!(!glimpse.differs(&glimpse.clone()));
        }
    }
}
