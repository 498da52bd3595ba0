//! What a file is before it is decoded.

use cuemark_core::Progress;
use serde::Deserialize;

use crate::ffprobe::{Disposition, Probed, lasting};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

/// What a file says about its pictures. Files may lie or not know; decoding finds out.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoInfo {
    /// Which of the file's streams holds the pictures.
    pub stream: usize,
    /// **Seconds**: the picture stream's, else the container's; `None` when neither says.
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
    /// When it is no media file, has no pictures (a cover image is none), or `ffprobe` is missing.
    pub fn probe(&self, video: &OpenedVideo, progress: &Progress) -> Result<VideoInfo> {
        let answer = self.ask::<Stream>(video, progress)?;
        answer.video().map_err(|problem| MediaError::video(video.path(), problem))
    }
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

#[derive(Deserialize)]
struct SideData {
    rotation: Option<i32>,
}

impl Probed<Stream> {
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
        Ok(VideoInfo {
            stream: stream.index,
            duration: lasting(stream.duration.as_deref()).or_else(|| lasting(self.format.duration.as_deref())),
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
