//! What is said in a video and when: TVR's JSON lines, SRT and WebVTT.

mod cue;
mod srt;
mod tvr_jsonl;
mod webvtt;

use cuemark_core::{RowCounts, RowPolicy, Span, VideoId};
use cuemark_formats::{Result, Source};

/// One spoken line.
#[derive(Debug, Clone, PartialEq)]
pub struct Subtitle {
    /// When it is shown, in seconds.
    pub span: Span,
    /// What is said, without mark-up; lines of one cue are joined by a line feed.
    pub text: String,
}

/// The subtitles of one video.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// The video; for layouts that hold one track and do not name it, the file's stem.
    pub video: VideoId,
    /// The lines, in file order.
    pub lines: Vec<Subtitle>,
}

/// Every track of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subtitles {
    /// The tracks, in file order.
    pub tracks: Vec<Track>,
    /// What was wrong with the times and what was done about it.
    pub rows: RowCounts,
}

/// A layout of subtitle files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubtitleFormat {
    /// TVR: `{"vid_name", "sub": [{"text", "start", "end"}]}` a line.
    TvrJsonl,
    /// SubRip.
    Srt,
    /// WebVTT.
    WebVtt,
}

impl SubtitleFormat {
    /// The layout that `source` looks like; everything that is neither JSON nor WebVTT is taken for SRT.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(source: &Source) -> Result<Self> {
        let head = source.head(1024)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
        Ok(if head.starts_with(b"WEBVTT") {
            Self::WebVtt
        } else if head.starts_with(b"{") {
            Self::TvrJsonl
        } else {
            Self::Srt
        })
    }
}

/// Reads a subtitle file in `format`, or in the layout it looks like.
///
/// # Errors
/// When it is not in that layout, or a time is refused under `bad_rows`.
pub fn read_subtitles(source: &Source, format: Option<SubtitleFormat>, bad_rows: RowPolicy) -> Result<Subtitles> {
    match format.map_or_else(|| SubtitleFormat::of(source), Ok)? {
        SubtitleFormat::TvrJsonl => tvr_jsonl::read(source, bad_rows),
        SubtitleFormat::Srt => srt::read(source, bad_rows),
        SubtitleFormat::WebVtt => webvtt::read(source, bad_rows),
    }
}
