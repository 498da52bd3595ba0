//! A folder with one file per video.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, VideoId};
use cuemark_formats::{Meter, ReadError};

use super::Arrays;
use crate::array::Room;
use crate::fault::Fault;
use crate::foreign::OpenOptions;
use crate::{Features, Result};

/// What published files carry in front of the video's name, and what is dropped when every file of a folder has it.
const KNOWN_PREFIXES: &[&str] = &["fc7_subsample5_fps25_"];

/// Reads one video's file.
pub(super) type ReadOne = fn(&Utf8Path, &OpenOptions) -> Result<Features>;

/// A folder with one file per video, listed when it is opened. A video is looked up in that list, so no name can lead out of
/// the folder.
pub(super) struct Files {
    videos: Vec<VideoId>,
    paths: BTreeMap<VideoId, Utf8PathBuf>,
    options: OpenOptions,
    read: ReadOne,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("videos", &self.videos.len()).finish_non_exhaustive()
    }
}

impl Files {
    /// Lists the files that end in one of `endings`. The video's name is the file's, without the last ending (so
    /// `clip.mp4.npy` is video `clip.mp4`) and without the prefix.
    pub(super) fn open(folder: &Utf8Path, endings: &[&str], options: &OpenOptions, read: ReadOne) -> Result<Self> {
        let io = |source| ReadError::Io { path: folder.to_owned(), source };
        let mut names = Vec::new();
        for entry in folder.read_dir_utf8().map_err(io)? {
            let entry = entry.map_err(io)?;
            if let Some((name, ending)) = entry.file_name().rsplit_once('.')
                && endings.contains(&ending)
                && !name.is_empty()
            {
                names.push((name.to_owned(), entry.into_path()));
            }
        }
        let prefix = match &options.prefix {
            Some(prefix) => prefix.as_str(),
            None => common_prefix(&names),
        };
        let mut paths = BTreeMap::new();
        for (name, path) in names {
            let video = name.strip_prefix(prefix).filter(|video| !video.is_empty()).ok_or_else(|| {
                ReadError::file(&path, format!("its name does not begin with `{prefix}` and go on"))
                    .with_hint(Advice::say("leave ").setting("prefix").and(" out, or move the file elsewhere"))
            })?;
            if let Some(earlier) = paths.insert(VideoId::new(video), path.clone()) {
                return Err(ReadError::file(&path, format!("is of the same video as `{earlier}`")).into());
            }
        }
        if paths.is_empty() {
            let wanted: Vec<String> = endings.iter().map(|ending| format!("`.{ending}`")).collect();
            return Err(ReadError::file(folder, format!("holds no {} file", wanted.join(" or "))).into());
        }
        Ok(Self { videos: paths.keys().cloned().collect(), paths, options: options.clone(), read })
    }
}

impl Arrays for Files {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        match self.paths.get(video) {
            Some(path) => (self.read)(path, &self.options),
            None => Err(ReadError::file(Utf8Path::new(video.as_str()), "is not a video of this folder").into()),
        }
    }
}

fn common_prefix(names: &[(String, Utf8PathBuf)]) -> &'static str {
    let common = |prefix: &&&str| names.iter().all(|(name, _)| name.starts_with(**prefix));
    KNOWN_PREFIXES.iter().find(common).copied().unwrap_or_default()
}

/// All bytes of `reader` (`what` lies at `path`), counted by `meter` and refused as soon as they are more than allowed.
pub(super) fn limited(
    reader: impl Read,
    path: &Utf8Path,
    what: &str,
    options: &OpenOptions,
    meter: &Meter,
) -> Result<Vec<u8>> {
    let bytes = meter.read_all(reader.take(options.largest.saturating_add(1)), 0);
    let bytes = bytes.map_err(|unread| Fault::from(unread).at(path, what))?;
    if bytes.len() as u64 > options.largest {
        return Err(Fault::TooLarge(options.largest).at(path, what).into());
    }
    Ok(bytes)
}

/// What one video may take.
pub(super) fn room<'m>(meter: &'m Meter, options: &OpenOptions) -> Room<'m> {
    Room { meter, largest: options.largest }
}

/// Reads what is left of an archive's entry, since its checksum is looked at only at its end.
pub(super) fn finish(entry: &mut impl Read, options: &OpenOptions) -> Result<(), Fault> {
    let left = io::copy(&mut entry.take(options.largest.saturating_add(1)), &mut io::sink()).map_err(Fault::Io)?;
    if left > options.largest { Err(Fault::TooLarge(options.largest)) } else { Ok(()) }
}
