//! Which frames make a clip.

use std::collections::BTreeMap;

use cuemark_core::ClipLen;
use cuemark_media::Framing;

use crate::{EncodeError, Result};

/// Which frames make a clip: clip `i` consists of the `frames` frames from `i * stride` on, at `fps` frames a second. The last
/// clip of a video is filled up with its last frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Frames a second.
    pub fps: f64,
    /// Frames of one clip.
    pub frames: usize,
    /// Frames from the start of a clip to the start of the next.
    pub stride: usize,
    /// What is made of each picture.
    pub framing: Framing,
}

impl Sampling {
    /// What one row stands for: `stride / fps` seconds.
    ///
    /// # Errors
    /// When rate, frames or stride cannot be.
    pub fn clip_len(&self) -> Result<ClipLen> {
        let Self { fps, frames, stride, .. } = *self;
        if !(fps > 0.0 && fps <= 1000.0) || frames == 0 || stride == 0 || stride > frames || frames > 4096 {
            let problem = format!("clips of {frames} frames, {stride} apart, at {fps} frames a second cannot be made");
            return Err(EncodeError::Sampling { problem });
        }
        let seconds = stride as f64 / fps;
        ClipLen::new(seconds).ok_or_else(|| EncodeError::Sampling { problem: format!("{seconds} s is no clip") })
    }

    /// What the recipe says about it beyond rate and size.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let last = "filled up with the video's last frame";
        [
            ("clip_frames", self.frames.to_string()),
            ("clip_stride", self.stride.to_string()),
            ("framing", self.framing.to_string()),
            ("frame_choice", "the one on screen".to_owned()),
            ("last_clip", last.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
