//! Voice by loudness alone: what stands out of the noise of the last seconds.
//!
//! It tells speech from silence and from steady noise, not from music; the guards on what the network says do the rest.

use super::FRAME;

/// Decibels above the noise.
const ABOVE: f32 = 9.0;
/// Decibels of full scale below which nothing is speech, be the film ever so quiet.
const QUIET: f32 = -58.0;
/// Decibels by which the noise may rise in one frame: 3 dB a second.
const RISE: f32 = 0.1;

/// Follows the noise.
#[derive(Debug, Default)]
pub(crate) struct Energy {
    noise: Option<f32>,
    before: f32,
}

impl Energy {
    pub(super) fn judge(&mut self, frame: &[f32; FRAME]) -> f32 {
        // Differences weaken hum and rumble, which are no voice however loud.
        let mut sum = 0f32;
        for sample in frame {
            let edge = sample - 0.95 * self.before;
            self.before = *sample;
            sum += edge * edge;
        }
        let level = 10.0 * (sum / FRAME as f32 + 1e-12).log10();
        let noise = self.noise.map_or(level, |noise| level.min(noise + RISE)).max(-100.0);
        self.noise = Some(noise);
        // Digital silence says nothing about the noise that comes after it.
        let floor = noise.max(QUIET - ABOVE);
        if level > floor + ABOVE { 0.9 } else { 0.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(seconds: f32, sample: impl Fn(f32) -> f32) -> Vec<f32> {
        let samples: Vec<f32> = (0..(seconds * 16_000.0) as usize).map(|n| sample(n as f32 / 16_000.0)).collect();
        let mut energy = Energy::default();
        samples.as_chunks::<FRAME>().0.iter().map(|frame| energy.judge(frame)).collect()
    }

    #[test]
    fn silence_and_steady_noise_are_no_speech() {
        let noise = |time: f32| ((time * 12_345.6).sin() * 43_758.547).fract() * 0.2;
        for frames in [judged(5.0, |_| 0.0), judged(5.0, noise)] {
            assert!(frames.iter().all(|judged| *judged < 0.5));
        }
    }

    #[test]
    fn a_burst_that_stands_out_of_the_noise_is() {
        let noise = |time: f32| ((time * 12_345.6).sin() * 43_758.547).fract() * 0.01;
        let frames = judged(4.0, |time| {
            noise(time) + if (2.0..2.5).contains(&time) { (time * 3_000.0).sin() * 0.3 } else { 0.0 }
        });
        let of = |seconds: f32| frames[(seconds * 16_000.0) as usize / FRAME];
        assert!(of(2.2) > 0.5 && of(1.0) < 0.5 && of(3.5) < 0.5);
    }
}
