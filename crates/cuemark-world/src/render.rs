//! Pointing a camera at the stage.

use cuemark_core::Rng;
use cuemark_features::sight::Picture;

use crate::{Film, Look, Shape, stage};

/// One picture, placed by its timestamp.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// When it was taken, in seconds.
    pub time: f64,
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue of each pixel, row after row.
    pub rgb: Vec<u8>,
}

impl Frame {
    /// The picture, as extractors see it: they do not know when it was taken.
    pub fn picture(&self) -> Picture<'_> {
        Picture { width: self.width, height: self.height, rgb: &self.rgb }
    }

    /// The same picture from farther away: every pixel is the mean of `by` × `by`.
    pub(crate) fn shrunk(&self, by: usize) -> Self {
        let (width, height) = (self.width / by, self.height / by);
        let mut rgb = Vec::with_capacity(3 * width * height);
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            let mut sums = [0_usize; 3];
            for line in row * by..(row + 1) * by {
                let at = 3 * (line * self.width + column * by);
                for pixel in self.rgb.get(at..at + 3 * by).unwrap_or_default().chunks_exact(3) {
                    sums.iter_mut().zip(pixel).for_each(|(sum, byte)| *sum += usize::from(*byte));
                }
            }
            let pixels = by * by;
            rgb.extend(sums.map(|sum| ((sum + pixels / 2) / pixels) as u8));
        }
        Self { time: self.time, width, height, rgb }
    }
}

/// A camera with a noisy sensor. Frames are 64 × 48 pixels at scale 1.
#[derive(Debug, Clone)]
pub struct Camera {
    scale: usize,
    /// Noise is read from a long table at a random place: drawing it for every pixel would cost more than all the rest.
    noise: Vec<i8>,
}

/// Frames a second.
pub(crate) const FPS: usize = 6;
/// Entries by which the place in the noise table may vary.
const NOISE_PLACES: usize = 1 << 16;

impl Camera {
    /// `scale` pixels per stage unit; `noise` is the standard deviation as a fraction of white.
    pub fn new(scale: usize, noise: f64, seed: u64) -> Self {
        let scale = scale.clamp(1, 40);
        let mut rng = Rng::stream(seed, "sensor noise");
        let bytes = 3 * (stage::WIDTH * stage::HEIGHT) as usize * scale * scale;
        let sample = |rng: &mut Rng| (rng.normal() * noise * 255.0).round().clamp(-127.0, 127.0) as i8;
        let noise =
            if noise > 0.0 { (0..NOISE_PLACES + bytes).map(|_| sample(&mut rng)).collect() } else { Vec::new() };
        Self { scale, noise }
    }

    /// Films the whole of `film`, a frame at a time: the camera never holds more than one.
    pub fn shoot<'a>(&'a self, film: &'a Film, mut rng: Rng) -> impl Iterator<Item = Frame> + 'a {
        let backdrop = self.backdrop(&mut rng);
        let frames = (film.duration * FPS as f64).round() as usize;
        (0..frames).map(move |number| {
            let time = (number as f64 + 0.5) / FPS as f64;
            let mut frame = Frame { time, width: self.width(), height: self.height(), rgb: backdrop.clone() };
            for (actor, look) in film.actors.iter().enumerate() {
                if let Some(pose) = stage::pose(film, actor, time) {
                    self.paint(&mut frame, *look, pose);
                }
            }
            self.add_noise(&mut frame, &mut rng);
            frame
        })
    }

    fn width(&self) -> usize {
        stage::WIDTH as usize * self.scale
    }

    fn height(&self) -> usize {
        stage::HEIGHT as usize * self.scale
    }

    /// A greyish wall and floor; every film has its own.
    fn backdrop(&self, rng: &mut Rng) -> Vec<u8> {
        let grey = rng.between(120.0, 190.0);
        let tint = [rng.between(-8.0, 8.0), rng.between(-8.0, 8.0), rng.between(-8.0, 8.0)];
        let (slope, floor) = (rng.between(-25.0, 25.0), rng.between(-35.0, -15.0));
        let mut rgb = Vec::with_capacity(3 * self.width() * self.height());
        for row in 0..self.height() {
            let down = row as f64 / self.height() as f64;
            let shade = grey + slope * down + if down > 0.85 { floor } else { 0.0 };
            let pixel = tint.map(|tint| (shade + tint).clamp(0.0, 255.0) as u8);
            rgb.extend(std::iter::repeat_n(pixel, self.width()).flatten());
        }
        rgb
    }

    fn paint(&self, frame: &mut Frame, look: Look, pose: stage::Pose) {
        let scale = self.scale as f64;
        let reach = pose.radius * 1.1 + 1.0;
        let rows = pixel_range(pose.place.y - reach, pose.place.y + reach, scale, frame.height);
        let columns = pixel_range(pose.place.x - reach, pose.place.x + reach, scale, frame.width);
        let (sin, cos) = (pose.angle.sin() as f32, pose.angle.cos() as f32);
        let colour = look.colour.rgb().map(f32::from);
        for row in rows {
            let y = ((row as f64 + 0.5) / scale - pose.place.y) as f32;
            for column in columns.clone() {
                let x = ((column as f64 + 0.5) / scale - pose.place.x) as f32;
                // In the actor's own frame: unrotated, radius 1.
                let radius = pose.radius as f32;
                let (u, v) = ((cos * x + sin * y) / radius, (cos * y - sin * x) / radius);
                let outside = distance(look.shape, u, v) * radius * self.scale as f32;
                let cover = (0.5 - outside).clamp(0.0, 1.0);
                if cover > 0.0 {
                    // A dark wedge on one side, or nobody could see a ball spin.
                    let shade = if u > 0.1 && v.abs() < 0.35 { 0.5 } else { 1.0 };
                    let at = 3 * (row * frame.width + column);
                    if let Some(pixel) = frame.rgb.get_mut(at..at + 3) {
                        for (byte, colour) in pixel.iter_mut().zip(colour) {
                            *byte = (f32::from(*byte) * (1.0 - cover) + colour * shade * cover) as u8;
                        }
                    }
                }
            }
        }
    }

    fn add_noise(&self, frame: &mut Frame, rng: &mut Rng) {
        let noise = self.noise.get(rng.below(NOISE_PLACES)..).unwrap_or_default();
        for (byte, noise) in frame.rgb.iter_mut().zip(noise) {
            *byte = byte.saturating_add_signed(*noise);
        }
    }
}

/// The pixels between two stage coordinates, inside the picture.
fn pixel_range(low: f64, high: f64, scale: f64, limit: usize) -> std::ops::Range<usize> {
    // The casts saturate: what lies left of the picture begins at 0.
    ((low * scale).floor() as usize).min(limit)..((high * scale).ceil() as usize).min(limit)
}

/// How far `(u, v)` lies outside a shape of radius 1; negative inside, near enough to a distance at the edge.
fn distance(shape: Shape, u: f32, v: f32) -> f32 {
    let radius = u.hypot(v);
    match shape {
        Shape::Ball => radius - 0.95,
        Shape::Ring => (radius - 0.75).abs() - 0.25,
        Shape::Square => u.abs().max(v.abs()) - 0.85,
        Shape::Triangle => (-u).max(0.5 * u + 0.866 * v.abs()) - 0.55,
        Shape::Cross => {
            let bar = |along: f32, across: f32| (along.abs() - 1.0).max(across.abs() - 0.32);
            bar(u, v).min(bar(v, u))
        }
        Shape::Star => {
            let fifth = std::f32::consts::TAU / 5.0;
            let angle = v.atan2(u).rem_euclid(fifth);
            // From a point of the star (radius 1.1) a straight edge runs to the dent (0.45) half way to the next point.
            let (sin, cos) = angle.min(fifth - angle).sin_cos();
            0.6 * (radius - 0.291 / (0.736 * sin + 0.2645 * cos))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_from_farther_away_has_the_mean_of_its_pixels() {
        let rgb = vec![0, 10, 20, 2, 10, 20, 255, 0, 0, 255, 0, 1, 3, 10, 20, 4, 12, 20, 255, 0, 0, 255, 0, 0];
        let shrunk = Frame { time: 1.5, width: 4, height: 2, rgb }.shrunk(2);
        // (0 + 2 + 3 + 4) / 4 is two and a quarter, (10 + 10 + 10 + 12) / 4 rounds up, 1 / 4 down.
        assert_eq!(shrunk, Frame { time: 1.5, width: 2, height: 1, rgb: vec![2, 11, 20, 255, 0, 0] });
    }
}
