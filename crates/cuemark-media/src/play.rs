//! One moment in a window.

use cuemark_core::{Progress, Span};

use crate::program::{Call, Input, Limits, Program};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

impl Ffmpeg {
    /// Plays `span` of a video with `ffplay`, and returns when it is over or the window was closed.
    ///
    /// # Errors
    /// When `ffplay` is missing or cannot play it.
    pub fn play(&self, video: &OpenedVideo, span: Span, progress: &Progress) -> Result<()> {
        let (from, length) = (format!("{:.3}", span.start()), format!("{:.3}", span.len()));
        let before = ["-hide_banner", "-loglevel", "level+error", "-autoexit", "-ss", &from, "-t", &length];
        let mut running = self.start(&Call {
            program: Program::Ffplay,
            before: before.map(str::to_owned).into(),
            input: Input::Video(video),
            after: Vec::new(),
            limits: Limits { memory: None, ..Limits::lengthy(span.len()) },
        })?;
        let (status, complaints) = running.end(progress)?;
        if status.success() {
            return Ok(());
        }
        let why = complaints.first.unwrap_or_else(|| format!("`ffplay` ended with {status}"));
        Err(MediaError::video(video.path(), format!("cannot be played: {why}")))
    }
}
