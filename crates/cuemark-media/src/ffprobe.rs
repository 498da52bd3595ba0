//! Questions to `ffprobe`, which answers in JSON.

use cuemark_core::Progress;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::program::{Call, Input, Limits, Program};
use crate::{Ffmpeg, MediaError, OpenedVideo, Result};

/// The most bytes that ffprobe may say about one file.
const ANSWER: usize = 1 << 20;
/// All that anybody here wants to know of a file (ffprobe's option `-show_entries`): starting the program takes longer than its answer.
const ENTRIES: &str = "stream=index,codec_type,codec_name,width,height,avg_frame_rate,start_time,duration:\
                       stream_tags=rotate,language:stream_side_data=rotation:stream_disposition=attached_pic:\
                       format=start_time,duration";

impl Ffmpeg {
    /// What `ffprobe` says of a file, without decoding anything. It is asked once of a file that is open.
    ///
    /// # Errors
    /// When it is no media file, the answer is not of the expected shape, or `ffprobe` is missing.
    pub(crate) fn ask<T: DeserializeOwned>(&self, video: &OpenedVideo, progress: &Progress) -> Result<Probed<T>> {
        let fault = |problem: String| MediaError::video(video.path(), problem);
        let answer = match video.told() {
            Some(answer) => answer,
            None => video.tell(self.answer(video, progress)?),
        };
        serde_json::from_slice(answer).map_err(|error| fault(format!("what `ffprobe` says of it: {error}")))
    }

    fn answer(&self, video: &OpenedVideo, progress: &Progress) -> Result<Vec<u8>> {
        let mut running = self.start(&Call {
            program: Program::Ffprobe,
            before: ["-v", "level+error", "-of", "json", "-show_entries", ENTRIES].map(str::to_owned).into(),
            input: Input::Video(video),
            after: Vec::new(),
            limits: Limits::brief(30),
        })?;
        let answer = running.collect(ANSWER, progress)?;
        let (status, complaints) = running.end(progress)?;
        if !status.success() {
            let problem = complaints.first.unwrap_or_else(|| format!("`ffprobe` ended with {status}"));
            return Err(MediaError::video(video.path(), problem));
        }
        Ok(answer)
    }
}

/// A file's streams, of which the asker says what is to be known, and the container around them.
#[derive(Deserialize)]
pub(crate) struct Probed<T> {
    #[serde(default = "Vec::new")]
    pub(crate) streams: Vec<T>,
    #[serde(default)]
    pub(crate) format: Format,
}

/// The container.
#[derive(Deserialize, Default)]
pub(crate) struct Format {
    pub(crate) start_time: Option<String>,
    pub(crate) duration: Option<String>,
}

/// What a stream is for.
#[derive(Deserialize, Default)]
pub(crate) struct Disposition {
    /// 1 for a cover image, which is a stream of pictures to ffmpeg and none to us.
    #[serde(default)]
    pub(crate) attached_pic: u8,
}

/// Seconds, where the file says some. ffprobe writes numbers as text, and `N/A` where there is none.
pub(crate) fn seconds(text: Option<&str>) -> Option<f64> {
    text?.parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

/// Seconds that something may last.
pub(crate) fn lasting(text: Option<&str>) -> Option<f64> {
    seconds(text).filter(|seconds| *seconds > 0.0)
}
