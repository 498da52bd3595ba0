//! Pictures of ours as a video file.

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_formats::Overwrite;

use crate::cut::Unfinished;
use crate::program::{Call, Input, Limits, Program};
use crate::running::Fed;
use crate::{Ffmpeg, MediaError, Result};

/// The most bytes of one film of ours.
const FILE: u64 = 16 << 30;

/// What the pictures of a film to be written are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pictures {
    /// Width and height in pixels, both even.
    pub size: [usize; 2],
    /// So many a second.
    pub rate: f64,
}

impl Ffmpeg {
    /// Writes an H.264 film of `frames` (red, green and blue of each pixel) to `out`, whole or not at all. The same frames give the
    /// same bytes.
    ///
    /// # Errors
    /// When `out` is there and may not be replaced, or ffmpeg is missing, has no H.264 or cannot write.
    pub fn encode(
        &self,
        pictures: Pictures,
        frames: impl Iterator<Item = Vec<u8>>,
        out: &Utf8Path,
        overwrite: Overwrite,
        progress: &Progress,
    ) -> Result<()> {
        overwrite.check(out)?;
        let unfinished = Unfinished::beside(out)?;
        let coding = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "24", "-pix_fmt", "yuv420p", "-threads", "1"];
        let after = coding.into_iter().chain(["-movflags", "+faststart"]).map(Into::into);
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-nostats", "-loglevel", "level+error"].map(str::to_owned).into(),
            input: Input::Pictures { size: pictures.size, rate: pictures.rate },
            after: after.chain([format!("file:{}", unfinished.path).into()]).collect(),
            limits: Limits { file: FILE, ..Limits::lengthy(86_400.0) },
        })?;
        // When ffmpeg gives up it closes the pipe; its own words say more than the broken pipe does.
        let fed = running.feed(frames, progress)?;
        let (status, complaints) = running.end(progress)?;
        if fed == Fed::Cut || !status.success() {
            let why = complaints.first.unwrap_or_else(|| format!("`ffmpeg` ended with {status}"));
            return Err(MediaError::video(out, format!("cannot be written: {why}")));
        }
        unfinished.finish(out)
    }
}
