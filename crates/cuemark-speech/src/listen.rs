//! A film's sound as it comes: stretches of speech are gathered into windows, each is heard once, and nothing older is kept.

use cuemark_core::{Line, Progress, Span, Word};

use crate::Result;
use crate::activity::{Detector, FRAME, Region, Regions};
use crate::window::{Ear, HeardWindow};

/// Samples between two stretches beyond which the window is silent there: whatever is in a longer gap is not speech.
const GAP: u64 = 16_000;
/// Samples over which sound fades into that silence.
const FADE: usize = 160;
/// Seconds of speech that a window may leave at its end before it is heard again from there.
const LEFT: f64 = 1.0;
/// How often.
const AGAIN: usize = 4;

/// Gathers sound until a window is full.
pub(crate) struct Listener<'a> {
    ear: &'a Ear,
    detector: Detector<'a>,
    regions: Regions,
    /// Sound from sample `base` on.
    sound: Vec<f32>,
    base: u64,
    /// Samples that were judged.
    judged: u64,
    /// Stretches of the next window, in order.
    window: Vec<Region>,
    lines: Vec<Line>,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(ear: &'a Ear, detector: Detector<'a>) -> Self {
        Self {
            ear,
            detector,
            regions: Regions::default(),
            sound: Vec::new(),
            base: 0,
            judged: 0,
            window: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Takes more sound; windows that are full are heard.
    pub(crate) fn push(&mut self, samples: &[f32], progress: &Progress) -> Result<()> {
        self.sound.extend_from_slice(samples);
        while let Some(frame) =
            self.sound.get((self.judged - self.base) as usize..).and_then(<[f32]>::first_chunk::<FRAME>)
        {
            let judged = self.detector.judge(frame);
            self.judged += FRAME as u64;
            if let Some(region) = self.regions.push(judged) {
                self.gather(region, progress)?;
            }
            // Whatever speech may still end, it would be beyond this window.
            let full = |first: &Region| self.judged > first.start + self.ear.most() as u64;
            if self.window.first().is_some_and(full) && !self.regions.is_open() {
                self.hear(progress)?;
            }
        }
        let wanted = self.window.first().map_or(self.regions.wanted_from(), |first| first.start).min(self.judged);
        let old = wanted.saturating_sub(self.base) as usize;
        // Not at every piece: what remains is moved.
        if old > self.ear.most() / 4 {
            self.sound.drain(..old);
            self.base += old as u64;
        }
        Ok(())
    }

    /// Hears what is left.
    pub(crate) fn finish(mut self, progress: &Progress) -> Result<Vec<Line>> {
        if let Some(region) = self.regions.finish() {
            self.gather(region, progress)?;
        }
        self.hear(progress)?;
        Ok(self.lines)
    }

    fn gather(&mut self, region: Region, progress: &Progress) -> Result<()> {
        let most = self.ear.most() as u64;
        if self.window.first().is_some_and(|first| region.end - first.start > most) {
            self.hear(progress)?;
        }
        self.window.push(region);
        Ok(())
    }

    /// Hears the window that was gathered, and what it left once more.
    fn hear(&mut self, progress: &Progress) -> Result<()> {
        let window = std::mem::take(&mut self.window);
        let (Some(first), Some(last)) = (window.first(), window.last()) else { return Ok(()) };
        let start = first.start.max(self.base);
        let end = last.end.min(self.base + self.sound.len() as u64).min(start + self.ear.most() as u64).max(start);
        let mut samples = self.sound[(start - self.base) as usize..(end - self.base) as usize].to_vec();
        for pair in window.windows(2) {
            if pair[1].start.saturating_sub(pair[0].end) > GAP {
                let at = |sample: u64| (sample.saturating_sub(start) as usize).min(samples.len());
                let gap = at(pair[0].end)..at(pair[1].start);
                silence(&mut samples[gap]);
            }
        }
        let voiced = |from: f64| -> f64 {
            let from = start + (from * 16_000.0) as u64;
            window.iter().map(|region| region.end.saturating_sub(region.start.max(from)) as f64 / 16_000.0).sum()
        };
        let length = samples.len() as f64 / 16_000.0;
        let mut from = 0.0;
        for _ in 0..AGAIN {
            progress.check()?;
            let heard = self.ear.hear(&samples[(from * 16_000.0) as usize..], voiced(from))?;
            let until = from + heard.until;
            self.keep(heard, start as f64 / 16_000.0 + from);
            // A decoder may stop early; what it understood it does not say again.
            if until <= from + LEFT || until >= length || voiced(until) < LEFT {
                break;
            }
            from = until;
        }
        Ok(())
    }

    fn keep(&mut self, heard: HeardWindow, offset: f64) {
        let moved = |span: Span| Span::new(span.start() + offset, span.end() + offset).ok();
        for line in heard.lines {
            let Line { span, text, words, confidence } = line;
            let word = |word: Word| Some(Word { span: moved(word.span)?, text: word.text });
            let words = words.into_iter().filter_map(word).collect();
            self.lines.extend(moved(span).map(|span| Line { span, text, words, confidence }));
        }
    }
}

/// Fades out, is silent, fades in.
fn silence(samples: &mut [f32]) {
    let length = samples.len();
    for (index, sample) in samples.iter_mut().enumerate() {
        let edge = index.min(length - 1 - index);
        *sample *= if edge < FADE { 1.0 - edge as f32 / FADE as f32 } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_fades_into_silence_and_back() {
        let mut samples = vec![1.0; 1_000];
        silence(&mut samples);
        assert_eq!((samples[0], samples[999], samples[500]), (1.0, 1.0, 0.0));
        assert!(samples.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.01));
        silence(&mut []);
    }
}
