//! Which way up a line stands.

use camino::Utf8Path;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use crate::Result;
use crate::network::Network;
use crate::picture::Picture;

/// What the network looks at, in pixels.
const WIDTH: usize = 192;
const HEIGHT: usize = 48;
/// Lines in one call.
const BATCH: usize = 6;
/// A line is turned when the network is at least so sure.
const SURE: f32 = 0.9;

/// The network that tells lines that stand on their heads.
#[derive(Debug)]
pub(crate) struct Direction {
    network: Network,
}

impl Direction {
    pub(crate) fn open(folder: &Utf8Path) -> Result<Self> {
        Ok(Self { network: Network::open(folder, "direction.onnx", "PP-OCR's direction classifier")? })
    }

    /// Turns those of `lines` that stand on their heads.
    pub(crate) fn set_upright(&self, lines: &mut [Picture]) -> Result<()> {
        for batch in lines.chunks_mut(BATCH) {
            let plane = 3 * WIDTH * HEIGHT;
            let mut planes = vec![0.0; batch.len() * plane];
            for (line, planes) in batch.iter().zip(planes.chunks_exact_mut(plane)) {
                let width = (HEIGHT as f64 * (line.width as f64 / line.height as f64)).ceil() as usize;
                line.resized(width.clamp(1, WIDTH), HEIGHT).fill_planes(planes, WIDTH);
            }
            let output = self.network.run::<2>(&NdTensor::from_data([batch.len(), 3, HEIGHT, WIDTH], planes))?;
            if output.shape() != [batch.len(), 2] {
                return Err(self.network.unfit(format!("of {} lines it gives {:?}", batch.len(), output.shape())));
            }
            for (line, likely) in batch.iter_mut().zip(output.to_vec().chunks_exact(2)) {
                if likely[1] > likely[0] && likely[1] > SURE {
                    *line = line.upside_down();
                }
            }
        }
        Ok(())
    }
}
