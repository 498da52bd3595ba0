//! `.npy` per window of frames: `VIDEO.avi_START_END.npy`, one row each (TALL's C3D for TACoS).
//!
//! A folder may hold windows of several lengths over one another; one length makes a stream, its windows in order of their
//! start. Windows overlap: row `i` begins `i` strides into the video, which is what a clip length has to say.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, VideoId};
use cuemark_formats::ReadError;

use super::{Arrays, npy};
use crate::foreign::OpenOptions;
use crate::{Features, Result};

/// Endings of the video in front of the window, which tell such a file from a video whose name ends in numbers.
const VIDEO_ENDINGS: &[&str] = &[".avi", ".mp4", ".mkv", ".mov", ".webm"];

#[derive(Debug)]
pub(super) struct Windows {
    videos: Vec<VideoId>,
    /// Files in order of their first frame.
    paths: BTreeMap<VideoId, Vec<Utf8PathBuf>>,
    options: OpenOptions,
}

/// Video, first frame and frame past the last, from a file's name.
pub(super) fn parse(file_name: &str) -> Option<(&str, usize, usize)> {
    let (rest, end) = file_name.strip_suffix(".npy")?.rsplit_once('_')?;
    let (video, start) = rest.rsplit_once('_')?;
    let (start, end) = (start.parse().ok()?, end.parse().ok()?);
    (start < end && VIDEO_ENDINGS.iter().any(|ending| video.ends_with(ending))).then_some((video, start, end))
}

pub(super) fn open(folder: &Utf8Path, options: &OpenOptions) -> Result<Windows> {
    let io = |source| ReadError::Io { path: folder.to_owned(), source };
    let fault = |problem: String, hint: Advice| ReadError::file(folder, problem).with_hint(hint);
    let mut starts: BTreeMap<VideoId, BTreeMap<usize, Utf8PathBuf>> = BTreeMap::new();
    let mut lengths = BTreeSet::new();
    for entry in folder.read_dir_utf8().map_err(io)? {
        let entry = entry.map_err(io)?;
        let Some((video, start, end)) = parse(entry.file_name()) else { continue };
        lengths.insert(end - start);
        if options.window.is_none_or(|frames| frames == end - start) {
            starts.entry(VideoId::new(video)).or_default().insert(start, entry.into_path());
        }
    }
    if starts.is_empty() || (options.window.is_none() && lengths.len() > 1) {
        let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        let problem = format!(
            "holds windows of {} frames",
            if lengths.is_empty() { "no".to_owned() } else { lengths.join(", ") }
        );
        return Err(fault(problem, Advice::say("choose one length with ").set_any("window", "FRAMES")).into());
    }
    let mut paths = BTreeMap::new();
    for (video, windows) in starts {
        let begins: Vec<usize> = windows.keys().copied().collect();
        let strides: BTreeSet<usize> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if strides.len() > 1 {
            let problem = format!("the windows of `{video}` are not evenly spread: {strides:?} frames apart");
            return Err(
                fault(problem, "a window is missing, and rows after it would stand for the wrong time".into()).into()
            );
        }
        paths.insert(video, windows.into_values().collect());
    }
    Ok(Windows { videos: paths.keys().cloned().collect(), paths, options: options.clone() })
}

impl Arrays for Windows {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let (mut rows, mut width, mut data) = (0, None, Vec::new());
        for path in self.paths.get(video).into_iter().flatten() {
            let row = npy::read(path, &self.options)?;
            let expected = *width.get_or_insert(row.width());
            if row.rows() != 1 || row.width() != expected {
                let problem = format!("{} rows of {}, not one row of {expected}", row.rows(), row.width());
                return Err(ReadError::file(path, problem).into());
            }
            if ((data.len() + expected) * size_of::<f32>()) as u64 > self.options.largest {
                let (path, what) = (path.clone(), "all windows of the video together".to_owned());
                return Err(ReadError::TooLarge { path, what, limit: self.options.largest }.into());
            }
            data.extend(row.into_data());
            rows += 1;
        }
        Ok(Features::from_parts(rows, width.unwrap_or_default(), data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_windows_are_told_from_names_of_videos() {
        assert_eq!(parse("s13-d21.avi_1_65.npy"), Some(("s13-d21.avi", 1, 65)));
        for other in
            ["video_1_65.npy", "s13-d21.avi.npy", "s13-d21.avi_65_1.npy", "a.avi_1_65.npz", "a.avi_60.0_210.0.npy"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
