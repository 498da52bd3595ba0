//! From bytes to the numbers a network was trained on.

use cuemark_tensor::{Device, Tensor};
use rayon::prelude::*;

use super::Clips;

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
    pub fn tensor(&self, clips: &Clips, device: &Device) -> candle_core::Result<Tensor> {
        let [width, height] = clips.size();
        let table = self.table();
        let mut values = vec![0f32; clips.rgb().len()];
        let picture = clips.picture_bytes().max(3);
        values.par_chunks_mut(picture).zip(clips.rgb().par_chunks(picture)).for_each(|(values, rgb)| {
            for (values, rgb) in values.chunks_exact_mut(3).zip(rgb.chunks_exact(3)) {
                for channel in 0..3 {
                    values[channel] = table[channel][usize::from(rgb[channel])];
                }
            }
        });
        Tensor::from_vec(values, (clips.len(), clips.frames(), height, width, 3), device)
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
