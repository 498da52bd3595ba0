//! HDF5: one file with a dataset per video (`[video]`, or `[video]["c3d_features"]`), or one file per video with the dataset
//! `features`.
//!
//! The library behind it is C code that was not written for hostile files, which is why it stands behind a cargo feature. What
//! could lead out of the file (external links, external and virtual storage) is refused.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, VideoId};
use cuemark_formats::ReadError;
use hdf5_metno::dataset::Layout as Storage;
use hdf5_metno::types::TypeDescriptor;
use hdf5_metno::{Dataset, Error, File, Group, IndexType, IterationOrder, LinkType, LocationType};

use super::Arrays;
use super::files::Files;
use crate::array::rows_and_width;
use crate::foreign::OpenOptions;
use crate::{Features, Result};

/// Names that published files use inside a video's group or file, in the order they are looked for.
const KNOWN_ARRAYS: &[&str] = &["features", "c3d_features"];

/// A dataset called so after a video marks the clips with text; it is no video (TVR's subtitles).
const MASK: &str = "-mask";

#[derive(Debug)]
pub(super) struct Hdf5 {
    videos: Vec<VideoId>,
    path: Utf8PathBuf,
    file: File,
    options: OpenOptions,
}

pub(super) fn open_file(path: &Utf8Path, options: &OpenOptions) -> Result<Hdf5> {
    let file = File::open(path).map_err(|error| fault(path, &error))?;
    let names = inner_names(&file).map_err(|error| fault(path, &error))?;
    let is_mask = |name: &&String| {
        name.strip_suffix(MASK).is_some_and(|video| names.binary_search_by(|n| n.as_str().cmp(video)).is_ok())
    };
    let videos: Vec<VideoId> =
        names.iter().filter(|name| !is_mask(name)).map(|name| VideoId::new(name.as_str())).collect();
    if videos.is_empty() {
        return Err(ReadError::file(path, "holds no dataset").into());
    }
    Ok(Hdf5 { videos, path: path.to_owned(), file, options: options.clone() })
}

pub(super) fn open_folder(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["h5", "hdf5"], options, |path, options| {
        let file = File::open(path).map_err(|error| fault(path, &error))?;
        let dataset = only_dataset(&file, path, options)?;
        numbers(&dataset, path, options)
    })
}

impl Arrays for Hdf5 {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let (name, path) = (video.as_str(), &self.path);
        let kind = self.file.loc_type_by_name(name).map_err(|error| fault(path, &error))?;
        let dataset = if kind == LocationType::Group {
            let group = self.file.group(name).map_err(|error| fault(path, &error))?;
            only_dataset(&group, path, &self.options)?
        } else {
            self.file.dataset(name).map_err(|error| fault(path, &error))?
        };
        numbers(&dataset, path, &self.options)
    }
}

/// The members of a group that lie in the same file, sorted.
fn inner_names(group: &Group) -> Result<Vec<String>, Error> {
    let links = group.links(IndexType::Name, IterationOrder::Increasing)?;
    let mut names: Vec<String> =
        links.into_iter().filter(|(_, link)| link.link_type == LinkType::Hard).map(|(name, _)| name).collect();
    names.sort_unstable();
    Ok(names)
}

/// The dataset of one video: the one that was asked for, a published name, or the only one there is.
fn only_dataset(group: &Group, path: &Utf8Path, options: &OpenOptions) -> Result<Dataset> {
    let names = inner_names(group).map_err(|error| fault(path, &error))?;
    let has = |wanted: &&str| names.iter().any(|name| name == wanted);
    let name = match (&options.array, names.as_slice()) {
        (Some(array), _) => Some(array.as_str()).filter(has),
        (None, [only]) => Some(only.as_str()),
        (None, _) => KNOWN_ARRAYS.iter().copied().find(has),
    };
    let Some(name) = name else {
        let names: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
        let problem = format!("`{}` holds several datasets: {}", group.name(), names.join(", "));
        return Err(ReadError::file(path, problem).with_hint(Advice::say("name one with ").setting("array")).into());
    };
    Ok(group.dataset(name).map_err(|error| fault(path, &error))?)
}

fn numbers(dataset: &Dataset, path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let unfit = |problem: String| ReadError::file(path, format!("`{}`: {problem}", dataset.name()));
    let damaged = |error: Error| unfit(first_line(&error));
    let kind = dataset.dtype().and_then(|dtype| dtype.to_descriptor()).map_err(damaged)?;
    if !matches!(kind, TypeDescriptor::Float(_)) {
        return Err(unfit(format!("holds `{kind}`, not floating-point numbers")).into());
    }
    let plan = dataset.dcpl().map_err(damaged)?;
    let inside = matches!(plan.layout(), Storage::Compact | Storage::Contiguous | Storage::Chunked);
    if !plan.external().is_empty() || !inside {
        return Err(unfit("keeps its numbers in another file".to_owned()).into());
    }
    let shape = dataset.get_shape().map_err(damaged)?;
    let bytes =
        |axes: &[usize]| axes.iter().try_fold(kind.size().max(4) as u64, |bytes, axis| bytes.checked_mul(*axis as u64));
    let fits = |axes: &[usize]| bytes(axes).is_some_and(|bytes| bytes <= options.largest);
    if !fits(&shape) || dataset.chunk().is_some_and(|chunk| !fits(&chunk)) {
        let what = format!("`{}`", dataset.name());
        return Err(ReadError::TooLarge { path: path.to_owned(), what, limit: options.largest }.into());
    }
    let (rows, width) = rows_and_width(&shape).map_err(unfit)?;
    // The library may hold the numbers as the file has them beside those that it makes of them.
    let wanted = bytes(&shape).unwrap_or(u64::MAX).saturating_mul(2);
    let charged = options.meter().charge(wanted);
    charged.map_err(|exceeded| ReadError::memory(path, format!("`{}`", dataset.name()), exceeded))?;
    let data = dataset.read_raw::<f32>().map_err(damaged)?;
    Ok(Features::new(rows, width, data).ok_or_else(|| unfit(format!("shape {shape:?} does not hold")))?)
}

fn fault(path: &Utf8Path, error: &Error) -> ReadError {
    ReadError::file(path, format!("HDF5: {}", first_line(error)))
}

/// The library's messages go on for many lines.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
