//! Many videos into one store; what is finished stays finished.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use camino::Utf8Path;
use cuemark_core::{Progress, VideoId, whole_message};
use cuemark_features::{FeatureError, StoreWriter};
use cuemark_formats::{Overwrite, ReadError};
use cuemark_media::{Ffmpeg, VideoFile};
use serde::{Deserialize, Serialize};

use super::extract_rows;
use crate::visual::ClipEncoder;
use crate::{EncodeError, Result};

/// The stream that rows are stored under.
const STREAM: &str = "visual";

/// One of several processes that share the work: the videos `index`, `index + of`, … of the sorted list, counted from 0.
///
/// Written as `1/4`, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: usize,
    of: usize,
}

impl Shard {
    /// All of the work.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// `None` unless `index` is below `of`.
    pub fn new(index: usize, of: usize) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Whether the video at `place` of the sorted list, counted from 0, belongs to this share.
    pub fn takes(self, place: usize) -> bool {
        place % self.of == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    /// `i/n`, with `i` from 1 to `n`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse().ok()?)));
        let shard = parts.and_then(|(i, n)| Self::new(i.checked_sub(1)?, n));
        shard.ok_or_else(|| format!("`{text}` is not a share such as 1/4, 2/4, 3/4, 4/4"))
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

/// How to extract.
#[derive(Debug, Clone)]
pub struct ExtractOptions {
    /// Whether to start over.
    pub overwrite: Overwrite,
    /// Which share of the work this is.
    pub shard: Shard,
    /// The programs that decode.
    pub ffmpeg: Ffmpeg,
}

/// A video that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The video.
    pub video: VideoId,
    /// Why.
    pub problem: String,
}

/// A video that is damaged: its rows are what could be decoded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DamagedVideo {
    /// The video.
    pub video: VideoId,
    /// Seconds that its file promised and did not hold.
    pub missing_seconds: f64,
    /// How often the decoder complained.
    pub complaints: usize,
    /// Of what first.
    pub first_complaint: Option<String>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ExtractReport {
    /// Videos of this share.
    pub videos: usize,
    /// Those that were there already.
    pub resumed: usize,
    /// New rows.
    pub rows: usize,
    /// Seconds of video behind them.
    pub video_seconds: f64,
    /// Seconds that it took.
    pub wall_seconds: f64,
    /// Videos whose rows are not all that their files promised.
    pub partial: Vec<DamagedVideo>,
    /// Videos that gave nothing.
    pub failed: Vec<Failure>,
}

impl ExtractReport {
    /// Hours of video that an hour was enough for; `None` when nothing was done.
    pub fn speed(&self) -> Option<f64> {
        (self.video_seconds > 0.0 && self.wall_seconds > 0.0).then(|| self.video_seconds / self.wall_seconds)
    }
}

/// Writes the rows of every video to the store in `folder`, a shard for each. A video that is there already is kept, one that cannot be
/// decoded is reported and left out.
///
/// # Errors
/// When a program is missing, the store cannot be written or was made by another recipe, a network fails, or the work was stopped:
/// what is finished by then is in the store.
pub fn extract_to_store(
    videos: &[VideoFile],
    encoder: &dyn ClipEncoder,
    folder: &Utf8Path,
    options: &ExtractOptions,
    progress: &Progress,
) -> Result<ExtractReport> {
    options.ffmpeg.check()?;
    let begin = Instant::now();
    let recipes = BTreeMap::from([(STREAM.to_owned(), encoder.recipe())]);
    let writer = StoreWriter::create(folder, recipes, options.overwrite)?;
    let finished = writer.finished()?;
    let mut taken: BTreeSet<usize> = finished.keys().copied().collect();
    let there: HashMap<&VideoId, usize> =
        finished.iter().flat_map(|(shard, videos)| videos.iter().map(move |video| (video, *shard))).collect();
    encoder.sampling().clip_len()?;
    let mut report = ExtractReport::default();
    let share: Vec<&VideoFile> =
        videos.iter().enumerate().filter(|(place, _)| options.shard.takes(*place)).map(|(_, file)| file).collect();
    progress.phase("extracting", share.len());
    for file in share {
        report.videos += 1;
        if there.contains_key(&file.video) {
            report.resumed += 1;
            progress.advance(1)?;
            continue;
        }
        // Numbers of other shares are never taken, so that processes do not meet.
        let free = (options.shard.index..).step_by(options.shard.of).find(|number| !taken.contains(number));
        let number = free.unwrap_or_default();
        let mut spool = writer.spool(number, STREAM)?;
        let decoded = extract_rows(&options.ffmpeg, &file.path, encoder, progress, &mut |rows| {
            rows.iter().try_for_each(|row| Ok(spool.push(&file.video, row)?))
        });
        match decoded {
            Ok(decoded) => {
                report.rows += spool.rows();
                report.video_seconds += decoded.seconds;
                writer.write_spooled(number, &file.video, spool)?;
                taken.insert(number);
                if decoded.is_partial() {
                    report.partial.push(DamagedVideo {
                        video: file.video.clone(),
                        missing_seconds: decoded.missing_seconds,
                        complaints: decoded.complaints,
                        first_complaint: decoded.first_complaint,
                    });
                }
            }
            Err(error) if error.is_about_one_video() => {
                report.failed.push(Failure { video: file.video.clone(), problem: whole_message(&error) });
            }
            Err(error) => return Err(error),
        }
        progress.advance(1)?;
    }
    report.wall_seconds = begin.elapsed().as_secs_f64();
    Ok(report)
}

impl EncodeError {
    /// Whether another video may well succeed.
    fn is_about_one_video(&self) -> bool {
        match self {
            Self::Media(error) => error.is_about_one_video(),
            Self::Features(FeatureError::File(ReadError::Io { .. }) | FeatureError::Unfit { .. }) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_from_one_and_cover_everything_once() {
        let shares: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for place in 0..20 {
            assert_eq!(shares.iter().filter(|share| share.takes(place)).count(), 1);
        }
        assert_eq!(shares[1].to_string(), "2/3");
        for text in ["0/3", "4/3", "1", "a/b", "1/0", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
