//! What one frame shows of each hue.

use super::Picture;

/// Hues on the wheel, 30 degrees each; the first is centred on red.
pub(super) const HUES: usize = 12;

/// The least difference between a pixel's largest and smallest channel that counts as coloured.
const COLOURED: u8 = 64;
/// Fewer pixels than this are noise.
const SMALLEST: f32 = 6.0;
/// A pixel that belongs to no blob.
const NOTHING: u8 = u8::MAX;

/// The pixels of one hue in one picture. Lengths are fractions of the picture's height.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Blob {
    /// Share of the picture.
    pub(super) area: f32,
    /// Centre, from the upper left corner.
    pub(super) x: f32,
    pub(super) y: f32,
    /// Root of the mean squared distance from the centre.
    pub(super) spread: f32,
    /// Mean fourth power of that distance over the squared mean square: 1 for a thin ring, 4/3 for a disc, more for
    /// what has arms. The same however the shape is turned.
    pub(super) arms: f32,
    /// Length of the outline over that of a disc of the same area.
    pub(super) outline: f32,
    /// Where the dark pixels lie, seen from the centre: turns when the shape turns.
    pub(super) mark_x: f32,
    pub(super) mark_y: f32,
}

/// All blobs of one frame, by hue.
#[derive(Debug, Clone)]
pub(super) struct Blobs([Option<Blob>; HUES]);

/// One coloured pixel.
struct Pixel {
    x: f32,
    y: f32,
    hue: u8,
    on_outline: bool,
    /// The largest channel, 0 to 1.
    value: f32,
}

impl Blobs {
    pub(super) fn find(picture: &Picture) -> Self {
        let unit = 1.0 / picture.height.max(1) as f32;
        let pixels = coloured(picture, unit);
        let mut sums = [Sums::default(); HUES];
        for pixel in &pixels {
            if let Some(sums) = sums.get_mut(usize::from(pixel.hue)) {
                sums.add(pixel);
            }
        }
        let centres = sums.map(|sums| sums.centre());
        let mut moments = [Moments::default(); HUES];
        for pixel in &pixels {
            let hue = usize::from(pixel.hue);
            if let (Some(moments), Some(Some(centre))) = (moments.get_mut(hue), centres.get(hue)) {
                moments.add(pixel, centre);
            }
        }
        let pixels_of_picture = (picture.width * picture.height).max(1) as f32;
        let mut blobs = [None; HUES];
        for (((blob, centre), sums), moments) in blobs.iter_mut().zip(centres).zip(sums).zip(moments) {
            *blob = centre.map(|centre| assemble(centre, &sums, &moments, pixels_of_picture, unit));
        }
        Self(blobs)
    }

    /// By hue; `None` where the frame shows nothing of it.
    pub(super) fn by_hue(&self) -> &[Option<Blob>; HUES] {
        &self.0
    }

    pub(super) fn get(&self, hue: usize) -> Option<Blob> {
        self.0.get(hue).copied().flatten()
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: f32,
    x: f32,
    y: f32,
    value: f32,
    outline: f32,
}

#[derive(Clone, Copy)]
struct Centre {
    x: f32,
    y: f32,
    value: f32,
}

impl Sums {
    fn add(&mut self, pixel: &Pixel) {
        self.count += 1.0;
        self.x += pixel.x;
        self.y += pixel.y;
        self.value += pixel.value;
        self.outline += f32::from(u8::from(pixel.on_outline));
    }

    fn centre(&self) -> Option<Centre> {
        let count = self.count;
        (count >= SMALLEST).then(|| Centre { x: self.x / count, y: self.y / count, value: self.value / count })
    }
}

#[derive(Clone, Copy, Default)]
struct Moments {
    second: f32,
    fourth: f32,
    dark_x: f32,
    dark_y: f32,
}

impl Moments {
    fn add(&mut self, pixel: &Pixel, centre: &Centre) {
        let (x, y) = (pixel.x - centre.x, pixel.y - centre.y);
        let squared = x * x + y * y;
        self.second += squared;
        self.fourth += squared * squared;
        let darkness = centre.value - pixel.value;
        self.dark_x += darkness * x;
        self.dark_y += darkness * y;
    }
}

fn assemble(centre: Centre, sums: &Sums, moments: &Moments, picture: f32, unit: f32) -> Blob {
    let count = sums.count;
    let (second, fourth) = (moments.second / count, moments.fourth / count);
    let spread = second.sqrt();
    // Divided by the spread, so that large and small actors turn alike; the floor guards single pixels.
    let reach = count * spread.max(unit);
    Blob {
        area: count / picture,
        x: centre.x,
        y: centre.y,
        spread,
        arms: if second > 0.0 { fourth / (second * second) } else { 0.0 },
        outline: sums.outline / (4.0 * std::f32::consts::PI * count).sqrt(),
        mark_x: 10.0 * moments.dark_x / reach,
        mark_y: 10.0 * moments.dark_y / reach,
    }
}

fn coloured(picture: &Picture, unit: f32) -> Vec<Pixel> {
    let hues: Vec<u8> = picture.rgb.as_chunks::<3>().0.iter().map(|rgb| hue(*rgb)).collect();
    let mut pixels = Vec::new();
    for (at, hue) in hues.iter().copied().enumerate().filter(|(_, hue)| *hue != NOTHING) {
        let (row, column) = (at / picture.width, at % picture.width);
        let same = |neighbour: Option<usize>| neighbour.and_then(|at| hues.get(at)) == Some(&hue);
        let inside = column > 0
            && column + 1 < picture.width
            && same(at.checked_sub(1))
            && same(at.checked_add(1))
            && same(at.checked_sub(picture.width))
            && same(at.checked_add(picture.width));
        let value = picture.rgb.get(3 * at..3 * at + 3).and_then(|rgb| rgb.iter().max()).copied().unwrap_or(0);
        pixels.push(Pixel {
            x: (column as f32 + 0.5) * unit,
            y: (row as f32 + 0.5) * unit,
            hue,
            on_outline: !inside,
            value: f32::from(value) / 255.0,
        });
    }
    pixels
}

/// The pixel's place on the wheel, [`NOTHING`] when it is too grey to say.
fn hue([red, green, blue]: [u8; 3]) -> u8 {
    let (high, low) = (red.max(green).max(blue), red.min(green).min(blue));
    if high - low < COLOURED.min(high / 2 + 16) {
        return NOTHING;
    }
    let (r, g, b) = (f32::from(red), f32::from(green), f32::from(blue));
    let range = f32::from(high - low);
    let sixth = if high == red {
        (g - b) / range
    } else if high == green {
        2.0 + (b - r) / range
    } else {
        4.0 + (r - g) / range
    };
    ((sixth * 2.0).round() as i32).rem_euclid(HUES as i32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a white picture with the pixels for which `inside` holds painted.
    fn picture(colour: [u8; 3], inside: impl Fn(f32, f32) -> bool) -> Blobs {
        let (width, height) = (64, 48);
        let mut rgb = vec![230; 3 * width * height];
        for (at, pixel) in rgb.chunks_exact_mut(3).enumerate() {
            if inside((at % width) as f32 + 0.5, (at / width) as f32 + 0.5) {
                pixel.copy_from_slice(&colour);
            }
        }
        Blobs::find(&Picture { width, height, rgb: &rgb })
    }

    fn disc(x: f32, y: f32, radius: f32) -> impl Fn(f32, f32) -> bool {
        move |px, py| (px - x).hypot(py - y) < radius
    }

    #[test]
    fn hues_follow_the_wheel() {
        let pure = [[255, 0, 0], [255, 255, 0], [0, 255, 0], [0, 255, 255], [0, 0, 255], [255, 0, 255]];
        assert_eq!(pure.map(hue), [0, 2, 4, 6, 8, 10]);
        assert_eq!(hue([128, 130, 125]), NOTHING);
        assert_eq!(hue([0, 0, 0]), NOTHING);
    }

    #[test]
    fn a_disc_is_found_where_it_is_with_the_moments_of_a_disc() {
        let blob = picture([220, 20, 20], disc(30.0, 20.0, 12.0)).get(0).unwrap();
        assert!((blob.x * 48.0 - 30.0).abs() < 0.1 && (blob.y * 48.0 - 20.0).abs() < 0.1);
        assert!((blob.area * 3072.0 - std::f32::consts::PI * 144.0).abs() < 10.0);
        // Mean squared distance r²/2 and fourth power r⁴/3 of a disc.
        assert!((blob.spread * 48.0 - 12.0 / 2f32.sqrt()).abs() < 0.1);
        assert!((blob.arms - 4.0 / 3.0).abs() < 0.02, "{}", blob.arms);
    }

    #[test]
    fn a_ring_has_no_arms_and_a_cross_has() {
        let ring = picture([20, 20, 220], |x, y| (8.0..10.0).contains(&(x - 30.0).hypot(y - 24.0)));
        let cross = picture([20, 20, 220], |x, y| {
            let (x, y) = ((x - 30.0).abs(), (y - 24.0).abs());
            x.max(y) < 10.0 && x.min(y) < 3.0
        });
        let arms = |blobs: &Blobs| blobs.get(8).unwrap().arms;
        assert!(arms(&ring) < 1.05 && arms(&cross) > 1.45, "{} {}", arms(&ring), arms(&cross));
    }

    #[test]
    fn grey_pictures_and_specks_hold_nothing() {
        let empty = picture([40, 160, 50], |_, _| false);
        assert!(empty.by_hue().iter().all(Option::is_none));
        let speck = picture([40, 160, 50], |x, y| x < 2.0 && y < 2.0);
        assert!(speck.by_hue().iter().all(Option::is_none));
    }
}
