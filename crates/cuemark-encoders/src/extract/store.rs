//! Many videos into one store; what is finished stays finished.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{VideoId, whole_message};
use cuemark_features::StoreWriter;
use cuemark_features::video::Ffmpeg;
use cuemark_formats::{Overwrite, ReadError};
use serde::Serialize;

use super::extract_rows;
use crate::visual::ClipEncoder;
use crate::{EncodeError, Result};

/// The stream that rows are stored under.
const STREAM: &str = "visual";

/// Names of files that a folder's videos end in; files that are named themselves may end in anything.
const ENDINGS: [&str; 14] =
    ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ts", "mts", "wmv", "flv", "3gp", "ogv"];

/// One video file and what it is called in the store: its name without folder and ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoFile {
    /// What it is called.
    pub video: VideoId,
    /// Where it lies.
    pub path: Utf8PathBuf,
}

impl VideoFile {
    /// The videos that files and folders hold, sorted by name; folders are searched as deep as they go.
    ///
    /// # Errors
    /// When a path is not there, a folder cannot be read or has no video, or two files have one name.
    pub fn find(paths: &[Utf8PathBuf]) -> Result<Vec<Self>> {
        let mut files = Vec::new();
        for path in paths {
            let before = files.len();
            collect(path, &mut files)?;
            if files.len() == before {
                let fault = ReadError::file(path, "no video in this folder");
                return Err(fault.with_hint(format!("videos end in {}", ENDINGS.join(", "))).into());
            }
        }
        let mut by_name: BTreeMap<VideoId, Utf8PathBuf> = BTreeMap::new();
        for path in files {
            let video = VideoId::new(path.file_stem().unwrap_or(path.as_str()));
            match by_name.get(&video) {
                Some(other) if *other == path => {}
                Some(other) => {
                    let fault = ReadError::file(&path, format!("would be called `{video}`, as `{other}` is"));
                    return Err(fault.with_hint("rename one, or put them into stores of their own").into());
                }
                None => {
                    by_name.insert(video, path);
                }
            }
        }
        Ok(by_name.into_iter().map(|(video, path)| Self { video, path }).collect())
    }
}

fn collect(path: &Utf8Path, files: &mut Vec<Utf8PathBuf>) -> Result<()> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in path.read_dir_utf8().map_err(io)? {
        let entry = entry.map_err(io)?;
        // Links are not followed, so that no folder is visited twice.
        let kind = entry.file_type().map_err(io)?;
        let ending = entry.path().extension().map(str::to_ascii_lowercase);
        if kind.is_dir() || kind.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
            entries.push(entry.into_path());
        }
    }
    entries.sort_unstable();
    entries.iter().try_for_each(|entry| collect(entry, files))
}

/// One of several processes that share the work: the videos `index`, `index + of`, … of the sorted list, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// What has happened so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// A video is begun.
    Begun(&'a VideoId),
    /// So many more seconds of video are encoded.
    Seconds(f64),
    /// A video is done, for better or worse, or was there already.
    Done,
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
pub struct Partial {
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
    pub partial: Vec<Partial>,
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
/// When a program is missing, the store cannot be written or was made by another recipe, or a network fails.
pub fn extract_to_store(
    videos: &[VideoFile],
    encoder: &dyn ClipEncoder,
    folder: &Utf8Path,
    options: &ExtractOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExtractReport> {
    options.ffmpeg.check()?;
    let begin = Instant::now();
    let recipes = BTreeMap::from([(STREAM.to_owned(), encoder.recipe())]);
    let writer = StoreWriter::create(folder, recipes, options.overwrite)?;
    let finished = writer.finished()?;
    let mut taken: BTreeSet<usize> = finished.keys().copied().collect();
    let there: HashMap<&VideoId, usize> =
        finished.iter().flat_map(|(shard, videos)| videos.iter().map(move |video| (video, *shard))).collect();
    let clip_seconds = encoder.sampling().clip_len()?.seconds();
    let mut report = ExtractReport::default();
    for (_, file) in videos.iter().enumerate().filter(|(place, _)| options.shard.takes(*place)) {
        report.videos += 1;
        if there.contains_key(&file.video) {
            report.resumed += 1;
            progress(Progress::Done);
            continue;
        }
        progress(Progress::Begun(&file.video));
        // Numbers of other shares are never taken, so that processes do not meet.
        let free = (options.shard.index..).step_by(options.shard.of).find(|number| !taken.contains(number));
        let number = free.unwrap_or_default();
        let mut spool = writer.spool(number, STREAM)?;
        let decoded = extract_rows(&options.ffmpeg, &file.path, encoder, &mut |rows| {
            progress(Progress::Seconds(rows.len() as f64 * clip_seconds));
            rows.iter().try_for_each(|row| Ok(spool.push(&file.video, row)?))
        });
        match decoded {
            Ok(decoded) => {
                report.rows += spool.rows();
                report.video_seconds += decoded.seconds;
                writer.write_spooled(number, &file.video, spool)?;
                taken.insert(number);
                if decoded.is_partial() {
                    report.partial.push(Partial {
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
        progress(Progress::Done);
    }
    report.wall_seconds = begin.elapsed().as_secs_f64();
    Ok(report)
}

impl EncodeError {
    /// Whether another video may well succeed.
    fn is_about_one_video(&self) -> bool {
        use cuemark_features::FeatureError;
        matches!(
            self,
            Self::Features(
                FeatureError::Video { .. } | FeatureError::File(ReadError::Io { .. }) | FeatureError::Unfit { .. }
            )
        )
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

    #[test]
    fn folders_are_searched_and_names_must_differ() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        for name in ["b.mp4", "deep/a.MKV", "deep/er/c.webm", "notes.txt"] {
            std::fs::write(root.join(name), "x").unwrap();
        }
        let names = |paths: &[Utf8PathBuf]| -> Vec<String> {
            VideoFile::find(paths).unwrap().iter().map(|file| file.video.to_string()).collect()
        };
        assert_eq!(names(std::slice::from_ref(&root)), ["a", "b", "c"]);
        assert_eq!(names(&[root.join("notes.txt"), root.join("b.mp4"), root.clone()]), ["a", "b", "c", "notes"]);
        std::fs::write(root.join("deep/b.avi"), "x").unwrap();
        let message = VideoFile::find(std::slice::from_ref(&root)).unwrap_err().to_string();
        assert!(message.contains("would be called `b`"), "{message}");
        std::fs::create_dir(root.join("empty")).unwrap();
        assert!(VideoFile::find(&[root.join("empty")]).is_err());
        assert!(VideoFile::find(&[root.join("gone.mp4")]).is_err());
    }
}
