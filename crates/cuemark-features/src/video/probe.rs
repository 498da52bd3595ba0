//! What a file is before it is decoded.

use std::io::Read as _;

use camino::Utf8Path;
use cuemark_formats::ReadError;
use serde::Deserialize;

use super::Ffmpeg;
use super::complaints::listen;
use super::program::start;
use crate::{FeatureError, Result};

/// The most that ffprobe may say about one file.
const ANSWER: u64 = 1 << 20;

/// What a file says about its pictures. Files may lie or not know; decoding finds out.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoInfo {
    /// Which of the file's streams holds the pictures.
    pub stream: usize,
    /// Seconds; `None` when the file does not say.
    pub duration: Option<f64>,
    /// Frames a second, on average; `None` when the file does not say.
    pub rate: Option<f64>,
    /// Width and height in pixels as shown, after rotation.
    pub size: [usize; 2],
    /// Degrees by which pictures are turned before they are shown, counter-clockwise, in (-360, 360).
    pub rotation: i32,
    /// What the pictures are compressed with.
    pub codec: String,
}

impl Ffmpeg {
    /// Looks at a file without decoding it.
    ///
    /// # Errors
    /// When it cannot be read, is no media file, has no pictures (a cover image is none), or `ffprobe` is missing.
    pub fn probe(&self, path: &Utf8Path) -> Result<VideoInfo> {
        let fault = |problem: String| FeatureError::Video { path: path.to_owned(), problem };
        let size = std::fs::metadata(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        if size.is_dir() {
            return Err(fault("is a folder".to_owned()));
        }
        if size.len() == 0 {
            return Err(fault("is empty: 0 bytes".to_owned()));
        }
        let entries = "stream=index,codec_type,codec_name,width,height,avg_frame_rate,duration:stream_tags=rotate:\
                       stream_side_data=rotation:stream_disposition=attached_pic:format=duration";
        let before = ["-v", "level+error", "-of", "json", "-show_entries", entries];
        let mut child = start(&mut self.reading("ffprobe", &before, path), "ffprobe")?;
        let listener = child.stderr.take().map(listen);
        let mut answer = String::new();
        let read = child.stdout.take().map_or(Ok(0), |stdout| stdout.take(ANSWER).read_to_string(&mut answer));
        let status = child.wait().map_err(|error| fault(format!("`ffprobe`: {error}")))?;
        let complaints = listener.and_then(|(listener, _)| listener.join().ok()).unwrap_or_default();
        if !status.success() {
            return Err(fault(complaints.first.unwrap_or_else(|| format!("`ffprobe` ended with {status}"))));
        }
        read.map_err(|error| fault(format!("`ffprobe`: {error}")))?;
        let answer: Answer =
            serde_json::from_str(&answer).map_err(|error| fault(format!("what `ffprobe` says of it: {error}")))?;
        answer.video().map_err(fault)
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize, Default)]
struct Format {
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Stream {
    index: usize,
    #[serde(default)]
    codec_type: String,
    #[serde(default)]
    codec_name: String,
    width: Option<usize>,
    height: Option<usize>,
    avg_frame_rate: Option<String>,
    duration: Option<String>,
    #[serde(default)]
    disposition: Disposition,
    #[serde(default)]
    side_data_list: Vec<SideData>,
}

#[derive(Deserialize, Default)]
struct Disposition {
    #[serde(default)]
    attached_pic: u8,
}

#[derive(Deserialize)]
struct SideData {
    rotation: Option<i32>,
}

impl Answer {
    /// The first stream of moving pictures.
    fn video(self) -> Result<VideoInfo, String> {
        let mut streams = self.streams.iter().filter(|stream| stream.codec_type == "video");
        let Some(stream) = streams.clone().find(|stream| stream.disposition.attached_pic == 0) else {
            let kinds: Vec<&str> = self.streams.iter().map(|stream| stream.codec_type.as_str()).collect();
            return Err(match (streams.next(), kinds.as_slice()) {
                (Some(_), _) => "has no moving pictures, only a cover image".to_owned(),
                (None, []) => "has no streams at all".to_owned(),
                (None, kinds) => format!("has no pictures, only {}", kinds.join(", ")),
            });
        };
        let (Some(width), Some(height)) = (stream.width, stream.height) else {
            return Err("does not say how large its pictures are".to_owned());
        };
        if width == 0 || height == 0 {
            return Err(format!("has pictures of {width} x {height} pixels"));
        }
        let rotation = stream.side_data_list.iter().find_map(|data| data.rotation).unwrap_or(0) % 360;
        let seconds = |text: &Option<String>| text.as_deref()?.parse().ok().filter(|s: &f64| *s > 0.0 && s.is_finite());
        Ok(VideoInfo {
            stream: stream.index,
            duration: seconds(&stream.duration).or_else(|| seconds(&self.format.duration)),
            rate: stream.avg_frame_rate.as_deref().and_then(ratio),
            size: if rotation % 180 == 0 { [width, height] } else { [height, width] },
            rotation,
            codec: stream.codec_name.clone(),
        })
    }
}

/// `30000/1001` as a number; `None` of `0/0`.
fn ratio(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/')?;
    let ratio = above.parse::<f64>().ok()? / below.parse::<f64>().ok()?;
    (ratio > 0.0 && ratio.is_finite()).then_some(ratio)
}
