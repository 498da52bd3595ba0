//! Pictures, one after the other, as ffmpeg writes them into a pipe.

use std::io;
use std::sync::mpsc::Receiver;

use cuemark_core::Progress;
use serde::{Deserialize, Serialize};

use crate::program::{Call, Input, Limits, Program};
use crate::running::{Running, signal};
use crate::{Ffmpeg, Framing, MediaError, OpenedVideo, Result, VideoInfo};

/// The longest film that is read, in seconds: a day.
const LONGEST: f64 = 86_400.0;
/// What any file may last, in seconds, however small.
const FOR_FREE: f64 = 3_600.0;
/// Beyond that every second takes so many bytes. A still picture that is encoded once a second takes more; ten frames in nine
/// days do not, and would cost hours and a million moments.
const BYTES_PER_SECOND: f64 = 16.0;

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
    /// Seconds that the file states; `None` when it does not say.
    pub stated_seconds: Option<f64>,
    /// Seconds that the file stated beyond those decoded; 0 for a whole file.
    pub missing_seconds: f64,
    /// How often ffmpeg complained.
    pub complaints: usize,
    /// Of what first.
    pub first_complaint: Option<String>,
}

/// A film that could be read only in part, or with complaints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// **Seconds** that could be read.
    pub read_seconds: f64,
    /// **Seconds** that the file states; `None` when it does not say.
    pub stated_seconds: Option<f64>,
    /// What the decoder complained of first; `None` when it found the end without a word.
    pub complaint: Option<String>,
}

impl std::fmt::Display for Partial {
    /// `read to 3.0 of 8.0 s: …`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "read to {:.1}", self.read_seconds)?;
        match self.stated_seconds {
            Some(stated) => write!(f, " of {stated:.1} s")?,
            None => write!(f, " s")?,
        }
        self.complaint.as_ref().map_or(Ok(()), |words| write!(f, ": {words}"))
    }
}

impl Decoded {
    /// What is missing or damaged; `None` of a whole film.
    pub fn partial(&self) -> Option<Partial> {
        self.is_partial().then(|| Partial {
            read_seconds: self.seconds,
            stated_seconds: self.stated_seconds,
            complaint: self.first_complaint.clone(),
        })
    }

    /// Whether something of the video is missing or damaged.
    pub fn is_partial(&self) -> bool {
        self.missing_seconds > 0.0 || self.complaints > 0
    }

    /// How long the film is, in seconds: what it states, unless it states nothing or pictures go on well beyond that.
    pub fn duration(&self) -> f64 {
        match self.stated_seconds {
            Some(stated) if self.seconds <= stated + SLACK => stated,
            _ => self.seconds,
        }
    }
}

/// Containers round; so many seconds are no loss and no surplus.
const SLACK: f64 = 0.5;

impl Ffmpeg {
    /// Starts to decode. Pictures are made as they are taken; dropping the iterator, or stopping `progress`, ends ffmpeg.
    ///
    /// # Errors
    /// When the rate is not a positive number, the film states a length that cannot be, or `ffmpeg` is missing.
    pub fn frames<'a>(
        &self,
        video: &'a OpenedVideo,
        info: &VideoInfo,
        rate: Rate,
        framing: Framing,
        progress: &'a Progress,
    ) -> Result<Frames<'a>> {
        let fault = |problem: String| MediaError::video(video.path(), problem);
        let longest = longest_of(video.stamp().bytes);
        if let Some(seconds) = info.duration.filter(|seconds| *seconds > longest) {
            return Err(fault(too_long(seconds, longest)));
        }
        // The clock starts at the first frame; a picture stays on screen until the next.
        let (level, pick, mode) = match rate {
            Rate::PerSecond(rate) if rate > 0.0 && rate <= 1000.0 => {
                ("level+error", format!("fps=fps={rate}:round=up"), &[][..])
            }
            Rate::PerSecond(rate) => return Err(fault(format!("{rate} frames a second cannot be made of it"))),
            Rate::EveryFrame => ("level+info", "showinfo=checksum=0".to_owned(), &["-fps_mode", "passthrough"][..]),
        };
        let filters = format!("setpts=PTS-STARTPTS,{pick},{}", framing.filters());
        let map = format!("0:{}", info.stream);
        let mut after = vec!["-map", &map, "-vf", &filters];
        after.extend(mode);
        after.extend(["-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"]);
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-nostats", "-loglevel", level].map(str::to_owned).into(),
            input: Input::Video(video),
            after: after.into_iter().map(Into::into).collect(),
            limits: Limits::lengthy(info.duration.unwrap_or(longest)),
        })?;
        let pictures = running.pieces(framing.bytes());
        Ok(Frames {
            video,
            rate,
            longest,
            running,
            pictures,
            progress,
            decoded: Decoded { stated_seconds: info.duration, ..Decoded::default() },
            last_gap: info.rate.map_or(0.0, f64::recip),
            ended: false,
        })
    }
}

/// The longest film that a file of so many bytes is believed to hold, in seconds.
pub(crate) fn longest_of(bytes: u64) -> f64 {
    LONGEST.min(FOR_FREE + bytes as f64 / BYTES_PER_SECOND)
}

pub(crate) fn too_long(seconds: f64, longest: f64) -> String {
    if longest < LONGEST {
        return format!("lasts {seconds:.0} s, and a file of its size is believed to hold {longest:.0} s at most");
    }
    format!("lasts {seconds:.0} s, and a film may last {LONGEST:.0} s at most")
}

/// The pictures of one video in the order of their times. After the last, [`Frames::finish`] says how it went.
#[derive(Debug)]
pub struct Frames<'a> {
    video: &'a OpenedVideo,
    rate: Rate,
    longest: f64,
    running: Running,
    pictures: Receiver<io::Result<Vec<u8>>>,
    progress: &'a Progress,
    decoded: Decoded,
    /// How long the last frame stays on screen, as far as is known.
    last_gap: f64,
    ended: bool,
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        self.ended = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

impl Frames<'_> {
    fn fault(&self, problem: String) -> MediaError {
        MediaError::video(self.video.path(), problem)
    }

    /// The next whole picture; a last one that is not whole is left out.
    fn read(&mut self) -> Result<Option<Frame>> {
        let rgb = match self.running.next(&self.pictures, self.progress)? {
            Some(Ok(rgb)) => rgb,
            Some(Err(error)) => return Err(self.fault(format!("`ffmpeg`: {error}"))),
            None => return Ok(None),
        };
        let time = match self.rate {
            Rate::PerSecond(rate) => {
                self.last_gap = rate.recip();
                self.decoded.frames as f64 / rate
            }
            Rate::EveryFrame => {
                let Some(time) = self.running.next_time(self.progress)? else {
                    return Err(self.fault("a frame came without its time".to_owned()));
                };
                self.last_gap = if self.decoded.frames > 0 { time - self.decoded.seconds } else { self.last_gap };
                time
            }
        };
        if time > self.longest {
            return Err(self.fault(too_long(time, self.longest)));
        }
        self.decoded.frames += 1;
        self.decoded.seconds = time;
        Ok(Some(Frame { time, rgb }))
    }

    /// Waits for ffmpeg and says what came out of it.
    ///
    /// # Errors
    /// When not one picture could be decoded, the file changed meanwhile, or somebody else ended ffmpeg: what it made by then
    /// says nothing about the film.
    pub fn finish(mut self) -> Result<Decoded> {
        for frame in self.by_ref() {
            frame?;
        }
        let (status, complaints) = self.running.end(self.progress)?;
        self.video.check_unchanged()?;
        if let Some(signal) = signal(status) {
            return Err(self.fault(format!("`ffmpeg` was ended by signal {signal}")));
        }
        let mut decoded = std::mem::take(&mut self.decoded);
        if decoded.frames == 0 {
            let why = complaints.first.unwrap_or_else(|| format!("`ffmpeg` ended with {status}"));
            return Err(self.fault(format!("not one frame could be decoded: {why}")));
        }
        decoded.seconds += self.last_gap.max(0.0);
        // Sound may outlast the pictures where only the container states a length.
        let missing = decoded.stated_seconds.map_or(0.0, |stated| stated - decoded.seconds);
        decoded.missing_seconds = if missing > SLACK.max(2.0 * self.last_gap) { missing } else { 0.0 };
        decoded.complaints = complaints.count;
        decoded.first_complaint = complaints.first;
        if !status.success() && decoded.complaints == 0 {
            (decoded.complaints, decoded.first_complaint) = (1, Some(format!("`ffmpeg` ended with {status}")));
        }
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_holds_no_long_film() {
        assert_eq!(longest_of(7_900), 3_600.0 + 7_900.0 / 16.0);
        assert_eq!(longest_of(5 << 30), 86_400.0);
    }

    #[test]
    fn a_film_lasts_as_long_as_it_states_unless_pictures_go_on() {
        let of = |seconds, stated_seconds| Decoded { seconds, stated_seconds, ..Decoded::default() }.duration();
        assert_eq!(of(13.0, Some(12.97)), 12.97);
        assert_eq!(of(5.0, Some(12.0)), 12.0);
        assert_eq!(of(20.0, Some(12.0)), 20.0);
        assert_eq!(of(7.5, None), 7.5);
    }
}
