//! From bytes to the numbers a network was trained on.

use candle_core::DType;
use cuemark_tensor::{Device, Tensor};
use rayon::prelude::*;

use super::Part;

/// A pixel becomes `(byte / 255 - mean) / deviation`, channel by channel: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pixels {
    /// What is taken away.
    pub mean: [f32; 3],
    /// What it is divided by.
    pub deviation: [f32; 3],
}

impl Pixels {
    /// -1 to 1.
    pub const SIGNED: Self = Self { mean: [0.5; 3], deviation: [0.5; 3] };
    /// As most networks trained on ImageNet take them.
    pub const IMAGENET: Self = Self { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };
    /// As CLIP takes them.
    pub const CLIP: Self =
        Self { mean: [0.481_454_66, 0.457_827_5, 0.408_210_73], deviation: [0.268_629_54, 0.261_302_6, 0.275_777_1] };

    /// # Shapes
    /// Returns `[clips, frames, height, width, 3]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn tensor<'a>(&self, clips: impl Into<Part<'a>>, device: &Device) -> candle_core::Result<Tensor> {
        let Part { frames, size: [width, height], rgb } = clips.into();
        let picture = 3 * width * height;
        let shape = (rgb.len() / (frames * picture).max(1), frames, height, width, 3);
        if !device.is_cpu() {
            // Bytes travel, a quarter of the numbers; the arithmetic is done where they are needed.
            let bytes = Tensor::from_slice(rgb, shape, device)?.to_dtype(DType::F32)?;
            if let ([mean, green, blue], [deviation, same, too]) = (self.mean, self.deviation)
                && [green, blue] == [mean; 2]
                && [same, too] == [deviation; 2]
            {
                // Numbers that lie side by side, instead of a channel for each to be found.
                return bytes.affine(f64::from(1.0 / (255.0 * deviation)), f64::from(-mean / deviation));
            }
            let scale = Tensor::new(&self.deviation.map(|deviation| 1.0 / (255.0 * deviation)), device)?;
            let mean = Tensor::new(&self.mean.map(|mean| 255.0 * mean), device)?;
            return bytes.broadcast_sub(&mean)?.broadcast_mul(&scale);
        }
        let table = self.table();
        let mut values = vec![0f32; rgb.len()];
        values.par_chunks_mut(picture.max(3)).zip(rgb.par_chunks(picture.max(3))).for_each(|(values, rgb)| {
            for (values, rgb) in values.chunks_exact_mut(3).zip(rgb.chunks_exact(3)) {
                for channel in 0..3 {
                    values[channel] = table[channel][usize::from(rgb[channel])];
                }
            }
        });
        Tensor::from_vec(values, shape, device)
    }

    /// What each byte becomes, by channel.
    fn table(&self) -> [[f32; 256]; 3] {
        let mut table = [[0.0; 256]; 3];
        for ((column, mean), deviation) in table.iter_mut().zip(self.mean).zip(self.deviation) {
            for (byte, value) in column.iter_mut().enumerate() {
                *value = (byte as f32 / 255.0 - mean) / deviation;
            }
        }
        table
    }
}
