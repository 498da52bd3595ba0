//! Pictures, one after the other, as ffmpeg writes them into a pipe.

use std::io::{ErrorKind, Read as _};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use camino::{Utf8Path, Utf8PathBuf};

use super::complaints::{Complaints, listen};
use super::program::start;
use super::{Ffmpeg, Framing, VideoInfo};
use crate::{FeatureError, Result};

/// Which frames are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// So many a second: frame `n` is the one on screen `n / rate` seconds after the first.
    PerSecond(f64),
    /// Every frame of the stream, at its own time.
    EveryFrame,
}

/// One decoded picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// **Seconds** after the video's first frame.
    pub time: f64,
    /// Red, green and blue of each pixel, line by line.
    pub rgb: Vec<u8>,
}

/// What came of a decoding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decoded {
    /// Pictures that came out.
    pub frames: usize,
    /// Seconds from the first frame to the end of the last, as far as was decoded.
    pub seconds: f64,
    /// Seconds that the file promised beyond that; 0 for a whole file.
    pub missing_seconds: f64,
    /// How often ffmpeg complained.
    pub complaints: usize,
    /// Of what first.
    pub first_complaint: Option<String>,
}

impl Decoded {
    /// Whether something of the video is missing or damaged.
    pub fn is_partial(&self) -> bool {
        self.missing_seconds > 0.0 || self.complaints > 0
    }
}

impl Ffmpeg {
    /// Starts to decode. Pictures are made as they are taken; dropping the iterator stops ffmpeg.
    ///
    /// # Errors
    /// When the rate is not a positive number, or `ffmpeg` is missing.
    pub fn frames(&self, path: &Utf8Path, info: &VideoInfo, rate: Rate, framing: Framing) -> Result<Frames> {
        let fault = |problem: String| FeatureError::Video { path: path.to_owned(), problem };
        // The clock starts at the first frame; a picture stays on screen until the next.
        let (level, pick, mode) = match rate {
            Rate::PerSecond(rate) if rate > 0.0 && rate <= 1000.0 => {
                ("level+error", format!("fps=fps={rate}:round=up"), &[][..])
            }
            Rate::PerSecond(rate) => return Err(fault(format!("{rate} frames a second cannot be made of it"))),
            Rate::EveryFrame => ("level+info", "showinfo=checksum=0".to_owned(), &["-fps_mode", "passthrough"][..]),
        };
        let filters = format!("setpts=PTS-STARTPTS,{pick},{}", framing.filters());
        let before = ["-nostdin", "-hide_banner", "-nostats", "-loglevel", level];
        let mut command = self.reading("ffmpeg", &before, path);
        command.args(["-map", &format!("0:{}", info.stream), "-vf", &filters]).args(mode);
        command.args(["-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"]);
        let mut child = start(&mut command, "ffmpeg")?;
        let (Some(pictures), Some(words)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(fault("`ffmpeg` came without its pipes".to_owned()));
        };
        let (listener, times) = listen(words);
        Ok(Frames {
            path: path.to_owned(),
            promised: info.duration,
            rate,
            bytes: framing.bytes(),
            child,
            pictures,
            listener: Some(listener),
            times,
            decoded: Decoded::default(),
            last_gap: info.rate.map_or(0.0, f64::recip),
            ended: false,
        })
    }
}

/// The pictures of one video in the order of their times. After the last, [`Frames::finish`] says how it went.
#[derive(Debug)]
pub struct Frames {
    path: Utf8PathBuf,
    promised: Option<f64>,
    rate: Rate,
    bytes: usize,
    child: Child,
    pictures: ChildStdout,
    listener: Option<JoinHandle<Complaints>>,
    times: Receiver<f64>,
    decoded: Decoded,
    /// How long the last frame stays on screen, as far as is known.
    last_gap: f64,
    ended: bool,
}

impl Iterator for Frames {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.read() {
            Ok(Some(frame)) => Some(Ok(frame)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}

impl Frames {
    fn fault(&self, problem: String) -> FeatureError {
        FeatureError::Video { path: self.path.clone(), problem }
    }

    /// The next whole picture; a last one that is not whole is left out.
    fn read(&mut self) -> Result<Option<Frame>> {
        let mut rgb = vec![0; self.bytes];
        match self.pictures.read_exact(&mut rgb) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(self.fault(format!("`ffmpeg`: {error}"))),
        }
        let time = match self.rate {
            Rate::PerSecond(rate) => {
                self.last_gap = rate.recip();
                self.decoded.frames as f64 / rate
            }
            Rate::EveryFrame => {
                let lost = || self.fault("a frame came without its time".to_owned());
                let time = self.times.recv().map_err(|_| lost())?;
                self.last_gap = if self.decoded.frames > 0 { time - self.decoded.seconds } else { self.last_gap };
                time
            }
        };
        self.decoded.frames += 1;
        self.decoded.seconds = time;
        Ok(Some(Frame { time, rgb }))
    }

    /// Waits for ffmpeg and says what came out of it.
    ///
    /// # Errors
    /// When nothing did: not one picture could be decoded.
    pub fn finish(mut self) -> Result<Decoded> {
        for frame in self.by_ref() {
            frame?;
        }
        let status = self.child.wait().map_err(|error| self.fault(format!("`ffmpeg`: {error}")))?;
        let complaints = self.listener.take().and_then(|listener| listener.join().ok()).unwrap_or_default();
        let mut decoded = std::mem::take(&mut self.decoded);
        if decoded.frames == 0 {
            let why = complaints.first.unwrap_or_else(|| format!("`ffmpeg` ended with {status}"));
            return Err(self.fault(format!("not one frame could be decoded: {why}")));
        }
        decoded.seconds += self.last_gap.max(0.0);
        // Containers round, and sound may outlast the pictures; less than half a second is no loss.
        let missing = self.promised.map_or(0.0, |promised| promised - decoded.seconds);
        let slack = 0.5f64.max(2.0 * self.last_gap);
        decoded.missing_seconds = if missing > slack { missing } else { 0.0 };
        decoded.complaints = complaints.count;
        decoded.first_complaint = complaints.first;
        Ok(decoded)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not be left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
