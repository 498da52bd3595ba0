//! Colour statistics of the whole picture.

use super::blobs::{Blobs, HUES};
use super::{Picture, mean};

/// Mean and spread of each channel, and the share of the picture that each hue covers.
pub(super) const WIDTH: usize = 6 + HUES;

pub(super) fn describe(pictures: &[Picture], blobs: &[Blobs], row: &mut Vec<f32>) {
    let channels: Vec<[[f32; 2]; 3]> = pictures.iter().map(channel_statistics).collect();
    for channel in 0..3 {
        for statistic in 0..2 {
            row.push(mean(channels.iter().map(|of_frame| of_frame[channel][statistic])));
        }
    }
    for hue in 0..HUES {
        let area = mean(blobs.iter().map(|blobs| blobs.get(hue).map_or(0.0, |blob| blob.area)));
        row.push(area.sqrt());
    }
}

/// Mean and standard deviation of red, green and blue.
fn channel_statistics(picture: &Picture) -> [[f32; 2]; 3] {
    let (pixels, _) = picture.rgb.as_chunks::<3>();
    let (mut sums, mut squares) = ([0u32; 3], [0u64; 3]);
    for pixel in pixels {
        for channel in 0..3 {
            let value = u32::from(pixel[channel]);
            sums[channel] += value;
            squares[channel] += u64::from(value * value);
        }
    }
    let count = pixels.len().max(1) as f64;
    std::array::from_fn(|channel| {
        let mean = f64::from(sums[channel]) / count;
        let variance = (squares[channel] as f64 / count - mean * mean).max(0.0);
        [(mean / 255.0) as f32, (variance.sqrt() / 255.0) as f32]
    })
}
