//! What a file holds beside its pictures: sound, and lines of text.

use cuemark_core::Progress;
use serde::Deserialize;

use crate::ffprobe::{Disposition, Probed, lasting, seconds};
use crate::program::{Call, Input, Limits, Program};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

/// The streams of a file that are heard or read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Streams {
    /// The first stream of sound.
    pub sound: Option<SoundInfo>,
    /// Subtitles that are text, in file order; those that are pictures are left out.
    pub subtitles: Vec<SubtitleInfo>,
}

/// What a file says about its sound.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundInfo {
    /// Which of the file's streams it is.
    pub stream: usize,
    /// **Seconds**: the stream's, else the container's; `None` when neither says.
    pub duration: Option<f64>,
    /// **Seconds** from the container's start to its first picture: where the clock of moments begins.
    pub pictures_begin: f64,
    /// What it is compressed with.
    pub codec: String,
}

/// What a file says about one of its subtitles.
#[derive(Debug, Clone, PartialEq)]
pub struct SubtitleInfo {
    /// Which of the file's streams it is.
    pub stream: usize,
    /// Three letters, as the file has them (`eng`); empty when it does not say.
    pub language: String,
    /// What it is written in.
    pub codec: String,
}

/// Subtitles that ffmpeg can turn into lines of text.
const TEXT: [&str; 7] = ["subrip", "srt", "ass", "ssa", "mov_text", "webvtt", "text"];

impl Ffmpeg {
    /// Looks at the streams of a file without decoding them.
    ///
    /// # Errors
    /// When it is no media file, or `ffprobe` is missing.
    pub fn streams(&self, video: &OpenedVideo, progress: &Progress) -> Result<Streams> {
        Ok(self.ask::<Stream>(video, progress)?.streams())
    }

    /// The lines of one of its subtitles as a SubRip file.
    ///
    /// # Errors
    /// When they cannot be decoded or are longer than `most` bytes.
    pub fn subtitle_text(
        &self,
        video: &OpenedVideo,
        subtitle: &SubtitleInfo,
        most: usize,
        progress: &Progress,
    ) -> Result<Vec<u8>> {
        let map = format!("0:{}", subtitle.stream);
        let mut running = self.start(&Call {
            program: Program::Ffmpeg,
            before: ["-nostdin", "-hide_banner", "-nostats", "-loglevel", "level+error"].map(str::to_owned).into(),
            input: Input::Video(video),
            after: ["-map", &map, "-f", "srt", "pipe:1"].into_iter().map(Into::into).collect(),
            limits: Limits::brief(600),
        })?;
        let text = running.collect(most, progress)?;
        let (status, complaints) = running.end(progress)?;
        if !status.success() && text.is_empty() {
            let why = complaints.first.unwrap_or_else(|| format!("`ffmpeg` ended with {status}"));
            return Err(MediaError::video(video.path(), format!("its subtitles cannot be read: {why}")));
        }
        Ok(text)
    }
}

#[derive(Deserialize)]
struct Stream {
    index: usize,
    #[serde(default)]
    codec_type: String,
    #[serde(default)]
    codec_name: String,
    start_time: Option<String>,
    duration: Option<String>,
    #[serde(default)]
    tags: Tags,
    #[serde(default)]
    disposition: Disposition,
}

#[derive(Deserialize, Default)]
struct Tags {
    #[serde(default)]
    language: String,
}

impl Probed<Stream> {
    fn streams(self) -> Streams {
        let pictures =
            self.streams.iter().find(|stream| stream.codec_type == "video" && stream.disposition.attached_pic == 0);
        let begin = pictures
            .and_then(|stream| seconds(stream.start_time.as_deref()))
            .zip(seconds(self.format.start_time.as_deref()));
        let pictures_begin = begin.map_or(0.0, |(own, container)| (own - container).max(0.0));
        let sound = self.streams.iter().find(|stream| stream.codec_type == "audio" && !stream.codec_name.is_empty());
        let texts = self
            .streams
            .iter()
            .filter(|stream| stream.codec_type == "subtitle" && TEXT.contains(&stream.codec_name.as_str()));
        Streams {
            sound: sound.map(|stream| SoundInfo {
                stream: stream.index,
                duration: lasting(stream.duration.as_deref()).or_else(|| lasting(self.format.duration.as_deref())),
                pictures_begin,
                codec: stream.codec_name.clone(),
            }),
            subtitles: texts
                .map(|stream| SubtitleInfo {
                    stream: stream.index,
                    language: stream.tags.language.clone(),
                    codec: stream.codec_name.clone(),
                })
                .collect(),
        }
    }
}
