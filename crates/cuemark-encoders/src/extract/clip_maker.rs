//! Clips out of a stream of frames.

use std::collections::VecDeque;

use cuemark_media::Framing;

use crate::visual::{Clips, Sampling};

/// Collects frames into clips, and clips into batches.
pub(super) struct ClipMaker {
    frames: usize,
    stride: usize,
    framing: Framing,
    at_once: usize,
    waiting: VecDeque<Vec<u8>>,
    clips: Clips,
}

impl ClipMaker {
    /// Hands out `at_once` clips at a time.
    pub(super) fn new(sampling: &Sampling, at_once: usize) -> Self {
        let Sampling { frames, stride, framing, .. } = *sampling;
        let clips = Clips::new(frames, &framing);
        Self { frames, stride, framing, at_once, waiting: VecDeque::with_capacity(frames + 1), clips }
    }

    /// Takes the next frame; clips come out when there are enough.
    pub(super) fn push(&mut self, rgb: Vec<u8>) -> Option<Clips> {
        self.waiting.push_back(rgb);
        if self.waiting.len() < self.frames {
            return None;
        }
        self.clip();
        if self.clips.len() < self.at_once { None } else { Some(self.take()) }
    }

    /// The rest: every stride that has a frame of its own begins a clip, filled up with the last frame.
    pub(super) fn finish(mut self) -> Option<Clips> {
        while let Some(last) = self.waiting.back().cloned() {
            let missing = self.frames.saturating_sub(self.waiting.len());
            self.waiting.extend(std::iter::repeat_n(last, missing));
            // What was filled up is no frame of its own.
            let real = self.frames - missing;
            self.clip();
            self.waiting.truncate(real.saturating_sub(self.stride));
        }
        (!self.clips.is_empty()).then(|| self.take())
    }

    fn clip(&mut self) {
        self.clips.push(self.waiting.iter().map(Vec::as_slice));
        self.waiting.drain(..self.stride.min(self.waiting.len()));
    }

    fn take(&mut self) -> Clips {
        std::mem::replace(&mut self.clips, Clips::new(self.frames, &self.framing))
    }
}

#[cfg(test)]
mod tests {
    use cuemark_media::Filter;

    use super::*;

    /// First bytes of the pictures of every clip that `count` frames give; frame `n` is all `n`.
    fn clips(count: u8, frames: usize, stride: usize) -> Vec<Vec<u8>> {
        let framing = Framing::Stretch { width: 2, height: 1, filter: Filter::Bilinear };
        let mut maker = ClipMaker::new(&Sampling { fps: 1.0, frames, stride, framing }, 2);
        let mut made: Vec<Clips> = (0..count).filter_map(|n| maker.push(vec![n; 6])).collect();
        made.extend(maker.finish());
        let bytes = |clips: &Clips| -> Vec<Vec<u8>> {
            clips.rgb().chunks(6 * frames).map(|clip| clip.iter().step_by(6).copied().collect()).collect()
        };
        made.iter().flat_map(bytes).collect()
    }

    #[test]
    fn clips_follow_each_other_and_the_last_is_filled_up() {
        assert_eq!(clips(7, 3, 3), [[0, 1, 2], [3, 4, 5], [6, 6, 6]]);
        assert_eq!(clips(6, 3, 3), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(clips(1, 3, 3), [[0, 0, 0]]);
        assert!(clips(0, 3, 3).is_empty());
    }

    #[test]
    fn clips_overlap_when_the_stride_is_shorter() {
        // Every stride that has a frame begins a clip: 5 frames, 2 apart, begin at 0, 2 and 4.
        assert_eq!(clips(5, 4, 2), [[0, 1, 2, 3], [2, 3, 4, 4], [4, 4, 4, 4]]);
        assert_eq!(clips(4, 4, 2), [[0, 1, 2, 3], [2, 3, 3, 3]]);
    }
}
