//! Where text is.

use camino::Utf8Path;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use crate::Result;
use crate::boxes::Map;
use crate::network::Network;
use crate::picture::Picture;

/// Sides are a multiple of this many pixels.
const STEP: usize = 32;
/// Pictures of more pixels are not looked at. Those that are fit for reading have half as many at most; a hair of a picture, enlarged
/// until it is high enough, would have as many as one likes.
pub(crate) const MOST_PIXELS: usize = 8 << 20;

/// The network that finds text.
#[derive(Debug)]
pub(crate) struct Detector {
    network: Network,
}

impl Detector {
    pub(crate) fn open(folder: &Utf8Path) -> Result<Self> {
        Ok(Self { network: Network::open(folder, "detection.onnx", "PP-OCR's text detector")? })
    }

    /// How likely each pixel belongs to text, of the picture enlarged until its shorter side has `short_side` pixels; `None` of one
    /// that is too thin to hold any text.
    pub(crate) fn map(&self, picture: &Picture, short_side: usize) -> Result<Option<Map>> {
        let [width, height] = size(picture, short_side);
        if width == 0 || height == 0 || width.saturating_mul(height) > MOST_PIXELS {
            return Ok(None);
        }
        let mut planes = vec![0.0; 3 * width * height];
        picture.resized(width, height).fill_planes(&mut planes, width);
        let output = self.network.run::<4>(&NdTensor::from_data([1, 3, height, width], planes))?;
        if output.shape() != [1, 1, height, width] {
            let shape = output.shape();
            return Err(self.network.unfit(format!("of {width} x {height} pixels it gives {shape:?}")));
        }
        Ok(Some(Map { width, height, values: output.to_vec() }))
    }
}

/// The width and height at which a picture is looked at.
fn size(picture: &Picture, short_side: usize) -> [usize; 2] {
    let shorter = picture.width.min(picture.height);
    let ratio = if shorter < short_side { short_side as f64 / shorter as f64 } else { 1.0 };
    [picture.width, picture.height].map(|side| stepped((side as f64 * ratio) as usize))
}

/// The nearest multiple of [`STEP`].
pub(crate) fn stepped(side: usize) -> usize {
    (side as f64 / STEP as f64).round_ties_even() as usize * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pictures_grow_and_large_ones_stay() {
        let of = |width, height| size(&Picture::black(width, height), 736);
        assert_eq!(of(640, 360), [1312, 736]);
        assert_eq!(of(1920, 1080), [1920, 1088]); // 33.75 steps
        assert_eq!(of(100, 300), [736, 2208]);
    }
}
