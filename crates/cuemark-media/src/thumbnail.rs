//! One picture of a video.

use cuemark_core::Progress;

use crate::program::{Call, Input, Limits, Program};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

/// The most bytes of one picture.
const PICTURE: usize = 8 << 20;

impl Ffmpeg {
    /// The frame at `seconds` as a JPEG of `width` pixels (16 to 1920), height in proportion.
    ///
    /// # Errors
    /// When there is no picture at that time, or the video cannot be decoded there.
    pub fn thumbnail(&self, video: &OpenedVideo, seconds: f64, width: usize, progress: &Progress) -> Result<Vec<u8>> {
        let at = format!("{:.3}", seconds.max(0.0));
        let scale = format!("scale={}:-2", width.clamp(16, 1920));
        let after = ["-map", "0:v:0", "-frames:v", "1", "-threads", "1", "-vf", &scale, "-f", "mjpeg", "-q:v", "4"];
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-loglevel", "level+error", "-ss", &at].map(str::to_owned).into(),
            input: Input::Video(video),
            after: after.into_iter().chain(["pipe:1"]).map(Into::into).collect(),
            limits: Limits::brief(20),
        })?;
        let picture = running.collect(PICTURE, progress)?;
        let (status, complaints) = running.end(progress)?;
        match complaints.first {
            _ if !picture.is_empty() && status.success() => Ok(picture),
            Some(complaint) => Err(MediaError::video(video.path(), format!("cannot be decoded: {complaint}"))),
            None => Err(MediaError::NoPicture { path: video.path().to_owned(), seconds }),
        }
    }
}
