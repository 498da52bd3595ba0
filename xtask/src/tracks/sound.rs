//! Speech and noise, sample by sample: one channel.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use cuemark_core::Rng;

/// How loud speech is made, as the root of its mean square; full scale is 1. With noise at 10 dB nothing is cut off.
const LOUDNESS: f64 = 0.05;
/// Samples below this share of the peak, before the first and after the last louder one, are no speech.
const SILENCE: f64 = 0.01;

/// Sound of one channel; full scale is 1.
pub(super) struct Sound {
    /// Samples a second.
    pub(super) rate: u32,
    pub(super) samples: Vec<f64>,
}

impl Sound {
    /// `sentence` as espeak-ng says it, without the silence around it. A file that exists is read.
    pub(super) fn speak(sentence: &str, file: &Path) -> Result<Self> {
        if !file.exists() {
            let part = file.with_extension("part");
            let mut command = Command::new("espeak-ng");
            command.args(["-v", "en-us", "-s", "140", "-w"]).arg(&part).arg(sentence);
            if !command.status().context("espeak-ng")?.success() {
                bail!("espeak-ng does not say `{sentence}`");
            }
            std::fs::rename(part, file)?;
        }
        let sound = Self::parse(&std::fs::read(file)?).with_context(|| file.display().to_string())?;
        Ok(sound.trimmed())
    }

    /// A WAV file of 16 bits and one channel.
    fn parse(bytes: &[u8]) -> Result<Self> {
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (mut at, mut rate) = (12, None);
        while let (Some(name), Some(length)) = (bytes.get(at..at + 4), number(at + 4)) {
            let body = at + 8;
            if name == b"fmt " {
                rate = number(body + 4);
            } else if name == b"data" {
                let end = (body + length as usize).min(bytes.len());
                let whole = |pair: &[u8]| f64::from(i16::from_le_bytes([pair[0], pair[1]])) / 32_768.0;
                let samples = bytes[body..end].chunks_exact(2).map(whole).collect();
                return Ok(Self { rate: rate.context("no format before the samples")?, samples });
            }
            // A chunk of odd length is followed by a zero.
            at = body + length as usize + length as usize % 2;
        }
        bail!("no samples")
    }

    fn trimmed(mut self) -> Self {
        let peak = self.samples.iter().fold(0.0, |peak: f64, sample| peak.max(sample.abs()));
        let is_loud = |sample: &f64| sample.abs() > SILENCE * peak;
        let end = self.samples.iter().rposition(is_loud).map_or(0, |last| last + 1);
        self.samples.truncate(end);
        let start = self.samples.iter().position(is_loud).unwrap_or(0);
        self.samples.drain(..start);
        self
    }

    /// In seconds.
    pub(super) fn duration(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }

    /// This speech from `start` on in `duration` seconds of silence, or of white noise so many `decibels` below the speech:
    /// the ratio of mean squares, that of the speech between its first and its last sound, pauses among them.
    pub(super) fn laid(&self, start: f64, duration: f64, decibels: Option<f64>, rng: &mut Rng) -> Self {
        let gain = LOUDNESS / root_mean_square(&self.samples).max(f64::MIN_POSITIVE);
        let noise = decibels.map_or(0.0, |decibels| LOUDNESS / 10.0_f64.powf(decibels / 20.0));
        let length = (duration * f64::from(self.rate)).round() as usize;
        let mut samples: Vec<f64> = (0..length).map(|_| noise * rng.normal()).collect();
        let begin = ((start * f64::from(self.rate)).round() as usize).min(length);
        samples[begin..].iter_mut().zip(&self.samples).for_each(|(to, sample)| *to += gain * sample);
        Self { rate: self.rate, samples }
    }

    /// As a WAV file of 16 bits.
    pub(super) fn to_wav(&self) -> Vec<u8> {
        let length = 2 * self.samples.len() as u32;
        let mut wav = b"RIFF".to_vec();
        wav.extend((36 + length).to_le_bytes());
        wav.extend(b"WAVEfmt ");
        wav.extend(16_u32.to_le_bytes());
        // PCM, one channel.
        wav.extend([1, 0, 1, 0]);
        wav.extend(self.rate.to_le_bytes());
        wav.extend((2 * self.rate).to_le_bytes());
        // Bytes and bits of a sample.
        wav.extend([2, 0, 16, 0]);
        wav.extend(b"data");
        wav.extend(length.to_le_bytes());
        let whole = |sample: &f64| (sample * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16;
        wav.extend(self.samples.iter().flat_map(|sample| whole(sample).to_le_bytes()));
        wav
    }
}

fn root_mean_square(samples: &[f64]) -> f64 {
    (samples.iter().map(|sample| sample * sample).sum::<f64>() / samples.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three seconds that swell and fade four times, with silence before and after.
    fn speech() -> Sound {
        let at = |i: usize| (i as f64 / 8_000.0 * 4.2).sin().powi(2) * (i as f64 * 0.31).sin() * 0.4;
        let silence = || std::iter::repeat_n(0.0, 4_000);
        Sound { rate: 8_000, samples: silence().chain((0..24_000).map(at)).chain(silence()).collect() }.trimmed()
    }

    #[test]
    fn noise_is_as_far_below_the_speech_as_was_asked() {
        let speech = speech();
        let clean = speech.laid(1.0, 8.0, None, &mut Rng::new(0));
        for decibels in [20.0, 10.0] {
            let noisy = speech.laid(1.0, 8.0, Some(decibels), &mut Rng::new(7));
            // What a film gets: 16 bits.
            let (clean, noisy) = (Sound::parse(&clean.to_wav()).unwrap(), Sound::parse(&noisy.to_wav()).unwrap());
            let said = &clean.samples[8_000..][..speech.samples.len()];
            let noise: Vec<f64> = noisy.samples.iter().zip(&clean.samples).map(|(a, b)| a - b).collect();
            let ratio = 20.0 * (root_mean_square(said) / root_mean_square(&noise)).log10();
            assert!((ratio - decibels).abs() < 0.5, "{ratio} dB, not {decibels}");
            assert!(noisy.samples.iter().all(|sample| sample.abs() < 0.999), "cut off");
        }
    }

    #[test]
    fn a_wav_file_is_read_as_it_was_written() {
        let sound = speech();
        let read = Sound::parse(&sound.to_wav()).unwrap();
        assert_eq!((read.rate, read.samples.len()), (8_000, sound.samples.len()));
        assert!(read.samples.iter().zip(&sound.samples).all(|(a, b)| (a - b).abs() < 1e-4));
        assert!((sound.duration() - 3.0).abs() < 0.1, "{}", sound.duration());
        assert!(Sound::parse(b"RIFF").is_err());
    }
}
