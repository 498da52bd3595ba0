//! What Whisper hears: the logarithm of the energy in some eighty bands, a hundred times a second.
//!
//! Windows of 400 samples every 160, Hann-weighted, squared magnitude of their Fourier transform, triangular bands on Slaney's scale
//! (linear to 1 kHz, logarithmic above) of equal area; base-10 logarithm, nothing more than 8 below the loudest, then `(x + 4) / 4`.

use std::f64::consts::PI;

use candle_core::{Device, Tensor};
use cuemark_tensor::MatrixProduct as _;

use crate::Result;

/// Samples of one window of analysis.
const WINDOW: usize = 400;
/// Samples between two of them.
pub(crate) const HOP: usize = 160;
/// Bins of the transform of a real signal.
const BINS: usize = WINDOW / 2 + 1;
const RATE: f64 = 16_000.0;

/// The tables of the transform; made once.
pub(crate) struct MelBands {
    /// Real parts beside imaginary ones, window included: `[WINDOW, 2 * BINS]`.
    transform: Tensor,
    /// `[BINS, bands]`.
    bands: Tensor,
    count: usize,
}

impl MelBands {
    /// So many bands: 80, or 128 for the newest networks.
    pub(crate) fn new(count: usize, device: &Device) -> Result<Self> {
        let mut transform = vec![0f32; WINDOW * 2 * BINS];
        for (sample, row) in transform.chunks_exact_mut(2 * BINS).enumerate() {
            let hann = 0.5 - 0.5 * (2.0 * PI * sample as f64 / WINDOW as f64).cos();
            for bin in 0..BINS {
                // The angle is reduced while it is a whole number, where nothing is lost.
                let angle = 2.0 * PI * ((sample * bin) % WINDOW) as f64 / WINDOW as f64;
                row[bin] = (hann * angle.cos()) as f32;
                row[BINS + bin] = (-hann * angle.sin()) as f32;
            }
        }
        let bands: Vec<f32> = triangles(count).into_iter().map(|value| value as f32).collect();
        Ok(Self {
            transform: Tensor::from_vec(transform, (WINDOW, 2 * BINS), device)?,
            bands: Tensor::from_vec(bands, (count, BINS), device)?.t()?.contiguous()?,
            count,
        })
    }

    /// Bands of one stretch of sound, padded with silence or cut to `frames` frames.
    ///
    /// # Shapes
    /// - returns `[frames, bands]`
    pub(crate) fn of(&self, samples: &[f32], frames: usize) -> Result<Tensor> {
        let length = frames * HOP;
        let mut padded = vec![0f32; length + WINDOW];
        let half = WINDOW / 2;
        let kept = samples.len().min(length);
        padded[half..half + kept].copy_from_slice(&samples[..kept]);
        // The edges are mirrored, the first and last samples themselves not repeated.
        for step in 1..=half.min(length.saturating_sub(1)) {
            padded[half - step] = padded[half + step];
            padded[half + length - 1 + step] = padded[half + length - 1 - step];
        }
        let mut cut = Vec::with_capacity(frames * WINDOW);
        for frame in 0..frames {
            cut.extend_from_slice(&padded[frame * HOP..frame * HOP + WINDOW]);
        }
        let cut = Tensor::from_vec(cut, (frames, WINDOW), self.transform.device())?;
        let parts = cut.times(&self.transform)?.sqr()?;
        let power = (parts.narrow(1, 0, BINS)? + parts.narrow(1, BINS, BINS)?)?;
        let energy = power.times(&self.bands)?.maximum(1e-10)?;
        let logarithm = (energy.log()? * std::f64::consts::LOG10_E)?;
        let loudest = logarithm.max_all()?.to_scalar::<f32>()?;
        Ok(((logarithm.maximum(f64::from(loudest) - 8.0)? + 4.0)? * 0.25)?)
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// Triangular bands `[count, BINS]` of equal area, equally far apart on Slaney's scale from 0 to 8 kHz.
fn triangles(count: usize) -> Vec<f64> {
    let corner = |index: usize| hertz(mels(RATE / 2.0) * index as f64 / (count + 1) as f64);
    let mut bands = vec![0f64; count * BINS];
    for (band, row) in bands.chunks_exact_mut(BINS).enumerate() {
        let (low, centre, high) = (corner(band), corner(band + 1), corner(band + 2));
        for (bin, weight) in row.iter_mut().enumerate() {
            let frequency = bin as f64 * RATE / WINDOW as f64;
            let rising = (frequency - low) / (centre - low);
            let falling = (high - frequency) / (high - centre);
            *weight = rising.min(falling).max(0.0) * 2.0 / (high - low);
        }
    }
    bands
}

/// Below this many hertz the scale is linear.
const LINEAR: f64 = 1_000.0;
/// Hertz of one mel there.
const STEP: f64 = 200.0 / 3.0;

/// 27 mels to a factor of 6.4 above.
fn log_step() -> f64 {
    6.4f64.ln() / 27.0
}

fn mels(hertz: f64) -> f64 {
    if hertz < LINEAR { hertz / STEP } else { LINEAR / STEP + (hertz / LINEAR).ln() / log_step() }
}

fn hertz(mels: f64) -> f64 {
    let corner = LINEAR / STEP;
    if mels < corner { mels * STEP } else { LINEAR * (log_step() * (mels - corner)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of faster-whisper 1.2.1's extractor for the same sound: a rising tone of three seconds, a second tone from one second
    /// on, then silence to half a minute.
    #[test]
    fn bands_are_those_of_faster_whisper() {
        let sample = |n: usize| {
            let t = n as f64 / 16_000.0;
            let second = if t > 1.0 { 0.05 * (2.0 * PI * 2_750.0 * t).sin() } else { 0.0 };
            (0.4 * (2.0 * PI * (200.0 + 300.0 * t) * t).sin() + second) as f32
        };
        let samples: Vec<f32> = (0..48_000).map(sample).collect();
        let bands = MelBands::new(80, &Device::Cpu).unwrap().of(&samples, 3_000).unwrap();
        assert_eq!(bands.dims(), [3_000, 80]);
        let bands = bands.to_vec2::<f32>().unwrap();
        for (frame, band, expected) in [
            (0, 0, 1.121_694),
            (0, 10, 0.856_700),
            (10, 5, 1.311_64),
            (50, 12, 1.364_188),
            (100, 40, 0.033_793),
            (150, 20, -0.186_484),
            (200, 55, -0.596_143),
            (250, 8, -0.596_143),
            (299, 30, 0.040_971),
            (299, 79, -0.414_651),
            (301, 3, -0.050_668),
            (1500, 40, -0.596_143),
        ] {
            assert!((bands[frame][band] - expected).abs() < 2e-3, "{frame} {band}: {} {expected}", bands[frame][band]);
        }
    }

    #[test]
    fn no_sound_and_too_much_of_it_fill_the_window() {
        let bands = MelBands::new(80, &Device::Cpu).unwrap();
        assert_eq!(bands.of(&[], 100).unwrap().dims(), [100, 80]);
        assert_eq!(bands.of(&vec![0.1; 100_000], 100).unwrap().dims(), [100, 80]);
    }
}
