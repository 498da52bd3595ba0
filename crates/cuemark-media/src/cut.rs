//! One moment as a file of its own.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Span};
use cuemark_formats::Overwrite;
use tempfile::TempDir;

use crate::program::{Call, Input, Limits, Program};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

/// The most bytes of one cut.
const FILE: u64 = 16 << 30;

impl Ffmpeg {
    /// Cuts `span` out of a video into the new file `out`, exactly, by encoding it again; whole or not at all.
    ///
    /// # Errors
    /// When `out` is there and may not be replaced, or the video cannot be decoded.
    pub fn cut(
        &self,
        video: &OpenedVideo,
        span: Span,
        out: &Utf8Path,
        overwrite: Overwrite,
        progress: &Progress,
    ) -> Result<()> {
        overwrite.check(out)?;
        let unfinished = Unfinished::beside(out)?;
        let (from, length) = (format!("{:.3}", span.start()), format!("{:.3}", span.len()));
        let after = ["-t", &length, "-map", "0:v:0", "-map", "0:a?", "-movflags", "+faststart"];
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-loglevel", "level+error", "-ss", &from].map(str::to_owned).into(),
            input: Input::Video(video),
            after: after.into_iter().map(Into::into).chain([format!("file:{}", unfinished.path).into()]).collect(),
            limits: Limits { file: FILE, ..Limits::lengthy(span.end()) },
        })?;
        let (status, complaints) = running.end(progress)?;
        if !status.success() {
            let why = complaints.first.unwrap_or_else(|| format!("`ffmpeg` ended with {status}"));
            return Err(MediaError::video(video.path(), format!("cannot be decoded: {why}")));
        }
        unfinished.finish(out)
    }
}

/// A file that a program writes piecemeal, in a folder of its own because the program wants the right ending; removed unless
/// [`Unfinished::finish`] is called.
pub(crate) struct Unfinished {
    _folder: TempDir,
    pub(crate) path: Utf8PathBuf,
}

impl Unfinished {
    pub(crate) fn beside(out: &Utf8Path) -> Result<Self> {
        let folder = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        let made = tempfile::tempdir_in(folder).map_err(MediaError::io("write", folder))?;
        let name = format!("unfinished.{}", out.extension().unwrap_or("mp4"));
        match Utf8PathBuf::from_path_buf(made.path().join(name)) {
            Ok(path) => Ok(Self { _folder: made, path }),
            Err(_) => Err(MediaError::video(out, "is no name for a file")),
        }
    }

    pub(crate) fn finish(self, out: &Utf8Path) -> Result<()> {
        std::fs::rename(&self.path, out).map_err(MediaError::io("write", out))
    }
}
