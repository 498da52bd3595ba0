//! Frames as the built-in world's extractors see them: small, at a fixed rate.

use std::io::{BufReader, Read as _};
use std::process::Child;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_features::Features;
use cuemark_world::Frame;
use cuemark_world::sight::{self, ClipView, Strength};

use super::{DAMAGED, address, call, fault, first_line, listen, start};
use crate::Result;

/// Width of the pictures, in pixels: what the world's extractors were made for.
const WIDTH: usize = 64;
/// Height of the pictures, in pixels.
const HEIGHT: usize = 48;
/// The most clips of one video: a day at one a second.
const MOST_CLIPS: usize = 86_400;

/// The frames of one video at a fixed rate, decoded as they are asked for.
pub struct WorldFrames {
    path: Utf8PathBuf,
    child: Child,
    fps: f64,
}

impl WorldFrames {
    /// Starts decoding at `fps` frames a second of the video's own time.
    ///
    /// # Errors
    /// When the file cannot be opened or `ffmpeg` is not there.
    pub fn open(path: &Utf8Path, fps: f64) -> Result<Self> {
        let mut command = call("ffmpeg");
        command.args(["-threads", "1", "-i", &address(path)?, "-map", "0:v:0", "-an", "-sn"]);
        command.args(["-vf", &format!("fps={fps},scale={WIDTH}:{HEIGHT}:flags=area")]);
        command.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]);
        Ok(Self { path: path.to_owned(), child: start(&mut command, path)?, fps })
    }

    /// One row per clip of `frames` frames; the last clip may have fewer.
    ///
    /// # Errors
    /// When nothing can be decoded.
    pub fn features(mut self, frames: usize, strength: Strength) -> Result<Features> {
        let Some(stdout) = self.child.stdout.take() else {
            return Err(fault(&self.path, "cannot be decoded".to_owned(), DAMAGED));
        };
        let said = listen(self.child.stderr.take());
        let mut pipe = BufReader::with_capacity(1 << 20, stdout);
        let (mut clips, mut clip, mut number) = (Vec::new(), Vec::with_capacity(frames), 0usize);
        loop {
            let mut rgb = vec![0u8; 3 * WIDTH * HEIGHT];
            if pipe.read_exact(&mut rgb).is_err() || clips.len() >= MOST_CLIPS {
                break;
            }
            let time = (number as f64 + 0.5) / self.fps;
            clip.push(Frame { time, width: WIDTH, height: HEIGHT, rgb });
            number += 1;
            if clip.len() == frames {
                clips.push(ClipView::of(&clip));
                clip.clear();
            }
        }
        drop(pipe);
        // Less than half a clip at the end says too little.
        if 2 * clip.len() >= frames || clips.is_empty() && !clip.is_empty() {
            clips.push(ClipView::of(&clip));
        }
        let _ = self.child.wait();
        let said = said.join().unwrap_or_default();
        // A file that breaks off half-way still has the clips before the break.
        if clips.is_empty() {
            return Err(fault(&self.path, first_line(&said), DAMAGED));
        }
        Ok(sight::features(&clips, strength))
    }
}

impl Drop for WorldFrames {
    fn drop(&mut self) {
        // Ends the program when nobody reads on; it is ours.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
