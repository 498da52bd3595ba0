//! From a picture to the lines that stand in it.

use camino::Utf8Path;

use crate::Result;
use crate::boxes::{Corners, boxes};
use crate::crop::cropped;
use crate::detector::{Detector, MOST_PIXELS, stepped};
use crate::direction::Direction;
use crate::picture::Picture;
use crate::recogniser::Recogniser;

/// Pictures are shrunk to so many pixels on the longer side, and enlarged to so many on the shorter.
const LONGEST: usize = 2000;
const SHORTEST: usize = 30;
/// Text is sought in a picture whose shorter side has at least so many pixels.
pub(crate) const SHORT_SIDE: usize = 736;
/// A picture that is so many times as wide as high gets bars above and below, so that its line does not touch the edge.
const WIDE: usize = 8;
/// Lines that the recogniser is less sure of are left out.
const LEAST_CONFIDENCE: f32 = 0.5;

/// Reads pictures and films.
#[derive(Debug)]
pub struct Reader {
    pub(crate) detector: Detector,
    direction: Direction,
    recogniser: Recogniser,
}

/// One line in a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundText {
    /// What it says: the likeliest characters. English words may run together.
    pub text: String,
    /// The same with every space that the recogniser suspects: what to look for words in.
    pub words: String,
    /// Where it stands, in **pixels**: x and y of its corners, clockwise from the upper left.
    pub corners: [[f32; 2]; 4],
    /// How sure the recogniser is, between 0.5 and 1.
    pub confidence: f32,
}

/// How a picture was made fit, and back again.
struct Fitted {
    picture: Picture,
    /// Pixels of the original for one of the fitted.
    scale: [f32; 2],
    /// Lines that were added on top.
    bar: usize,
}

impl Reader {
    /// Reads the three networks of PP-OCRv4 from a folder: `detection.onnx`, `direction.onnx`, `recognition.onnx`, as
    /// `cuemark weights pull pp-ocrv4` puts them there.
    ///
    /// # Errors
    /// When a file is missing or holds something else.
    pub fn open(weights: &Utf8Path) -> Result<Self> {
        Ok(Self {
            detector: Detector::open(weights)?,
            direction: Direction::open(weights)?,
            recogniser: Recogniser::open(weights)?,
        })
    }

    /// The lines in a picture, in reading order. `rgb` holds red, green and blue of each pixel, line by line.
    ///
    /// # Errors
    /// When `rgb` is no picture of that size, or the weights turn out to be of other networks.
    pub fn picture(&self, rgb: &[u8], width: usize, height: usize) -> Result<Vec<FoundText>> {
        self.read(&Picture::new(rgb, width, height)?, SHORT_SIDE, usize::MAX, &|| Ok(()))
    }

    /// As [`Reader::picture`], with at most `most` lines, sought in a picture whose shorter side has at least `short_side` pixels;
    /// `go_on` is asked between calls of the networks.
    pub(crate) fn read(
        &self,
        picture: &Picture,
        short_side: usize,
        most: usize,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<FoundText>> {
        let Some(fitted) = Fitted::of(picture) else { return Ok(Vec::new()) };
        let Some(map) = self.detector.map(&fitted.picture, short_side)? else { return Ok(Vec::new()) };
        let places = boxes(&map, fitted.picture.width, fitted.picture.height);
        let cut = places.iter().filter_map(|corners| Some((*corners, cropped(&fitted.picture, corners)?)));
        let (places, mut lines): (Vec<Corners>, Vec<Picture>) = cut.take(most).unzip();
        go_on()?;
        self.direction.set_upright(&mut lines)?;
        let readings = self.recogniser.read(&lines, go_on)?;
        let found = places.into_iter().zip(readings).map(|(corners, reading)| FoundText {
            text: reading.text,
            words: reading.words,
            corners: corners.map(|corner| fitted.original(corner, picture)),
            confidence: reading.confidence,
        });
        Ok(found.filter(|line| line.confidence >= LEAST_CONFIDENCE).collect())
    }
}

impl Fitted {
    /// `None` of a picture that would have no pixels left.
    fn of(picture: &Picture) -> Option<Self> {
        let mut fitted = picture.clone();
        let longest = fitted.width.max(fitted.height);
        if longest > LONGEST {
            fitted = scaled(&fitted, LONGEST as f64 / longest as f64)?;
        }
        let shortest = fitted.width.min(fitted.height);
        if shortest < SHORTEST {
            fitted = scaled(&fitted, SHORTEST as f64 / shortest as f64)?;
        }
        let scale = [picture.width as f32 / fitted.width as f32, picture.height as f32 / fitted.height as f32];
        let mut bar = 0;
        if fitted.height <= SHORTEST || fitted.width > WIDE * fitted.height {
            bar = ((fitted.width / WIDE).max(SHORTEST) * 2).abs_diff(fitted.height) / 2;
            if fitted.width.saturating_mul(fitted.height + 2 * bar) > MOST_PIXELS {
                return None;
            }
            fitted = fitted.with_bars(bar);
        }
        Some(Self { picture: fitted, scale, bar })
    }

    /// A place in the picture as it was given.
    fn original(&self, [x, y]: [f32; 2], picture: &Picture) -> [f32; 2] {
        let [x, y] = [x * self.scale[0], (y - self.bar as f32) * self.scale[1]];
        [x.clamp(0.0, picture.width as f32), y.clamp(0.0, picture.height as f32)]
    }
}

fn scaled(picture: &Picture, ratio: f64) -> Option<Picture> {
    let [width, height] = [picture.width, picture.height].map(|side| stepped((side as f64 * ratio) as usize));
    (width > 0 && height > 0 && width.saturating_mul(height) <= MOST_PIXELS).then(|| picture.resized(width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_fitted_as_the_reference_fits_them() {
        let of = |width, height| {
            let fitted = Fitted::of(&Picture::black(width, height))?;
            Some((fitted.picture.width, fitted.picture.height, fitted.bar))
        };
        assert_eq!(of(640, 360), Some((640, 360, 0)));
        assert_eq!(of(4000, 3000), Some((1984, 1504, 0))); // 62.5 steps of 32 go to the even 62
        assert_eq!(of(60, 20), Some((96, 32, 0))); // 90 x 30, in steps
        assert_eq!(of(900, 100), Some((900, 224, 62))); // nine times as wide: a quarter of its width in all
        assert_eq!(of(3000, 5), None);
        assert_eq!(of(1999, 1), None); // would have become 60,000 pixels wide
    }
}
