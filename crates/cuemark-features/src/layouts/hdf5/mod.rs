//! HDF5: one file with a dataset per video (`[video]`, or `[video]["c3d_features"]`), or one file per video with the dataset
//! `features`.
//!
//! The reader is `hdf5-reader`, Rust throughout and written for damaged files. Links and numbers that lie in other files are
//! not followed: nobody gives it the means to open them.

mod lzf;

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, VideoId};
use cuemark_formats::ReadError;
use hdf5_reader::error::{ByteOrder as Order, Error};
use hdf5_reader::group::Group;
use hdf5_reader::{Dataset, Datatype, FileStorage, FilterRegistry, Hdf5File, OpenOptions as ReaderOptions};

use super::Arrays;
use super::files::Files;
use crate::array::{ArrayHead, Axes, Room, rows_and_width};
use crate::fault::Fault;
use crate::foreign::OpenOptions;
use crate::number::{ByteOrder, Number};
use crate::{Features, Result};

/// Names that published files use inside a video's group or file, in the order they are looked for.
const KNOWN_ARRAYS: &[&str] = &["features", "c3d_features"];

/// A dataset called so after a video marks the clips with text; it is no video (TVR's subtitles).
const MASK: &str = "-mask";

/// The longest description of one object; real ones take a few kilobytes.
const LONGEST_HEADER: usize = 16 << 20;

pub(super) struct Hdf5 {
    videos: Vec<VideoId>,
    path: Utf8PathBuf,
    root: Group,
    options: OpenOptions,
}

impl fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdf5").field("path", &self.path).field("videos", &self.videos.len()).finish_non_exhaustive()
    }
}

pub(super) fn open_file(path: &Utf8Path, options: &OpenOptions) -> Result<Hdf5> {
    let root = root(path, options)?;
    let names = names(&root, path, options)?;
    let is_mask = |name: &&String| {
        name.strip_suffix(MASK).is_some_and(|video| names.binary_search_by(|n| n.as_str().cmp(video)).is_ok())
    };
    let videos: Vec<VideoId> =
        names.iter().filter(|name| !is_mask(name)).map(|name| VideoId::new(name.as_str())).collect();
    if videos.is_empty() {
        return Err(ReadError::file(path, "holds no dataset").into());
    }
    Ok(Hdf5 { videos, path: path.to_owned(), root, options: options.clone() })
}

pub(super) fn open_folder(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["h5", "hdf5"], options, |path, options| {
        numbers(&only_dataset(&root(path, options)?, path, options)?, path, options)
    })
}

impl Arrays for Hdf5 {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let path = &self.path;
        let dataset = match self.root.dataset(video.as_str()) {
            Ok(dataset) => dataset,
            Err(Error::DatasetNotFound(_)) => {
                let group = self.root.group(video.as_str()).map_err(|error| fault(path, &error))?;
                only_dataset(&group, path, &self.options)?
            }
            Err(error) => return Err(fault(path, &error).into()),
        };
        numbers(&dataset, path, &self.options)
    }
}

/// The top of a file that is read in pieces, never mapped: one that shrinks meanwhile gives an error and no signal.
fn root(path: &Utf8Path, options: &OpenOptions) -> Result<Group> {
    let mut filters = FilterRegistry::new();
    let largest = usize::try_from(options.largest).unwrap_or(usize::MAX);
    filters.register(lzf::ID, Box::new(move |_, packed, _| lzf::unpack(packed, largest)));
    let reading = ReaderOptions::default()
        .with_filter_registry(filters)
        // Every dataset is read once, so that a cache would only take room.
        .with_chunk_cache_bytes(0)
        .with_max_chunk_bytes(largest)
        .with_max_read_bytes(largest.saturating_mul(2))
        .with_max_object_header_bytes(LONGEST_HEADER);
    let opened = FileStorage::open(path)
        .and_then(|file| Hdf5File::from_storage_with_options(Arc::new(file), reading))
        .and_then(|file| file.root_group());
    Ok(opened.map_err(|error| fault(path, &error))?)
}

/// Everything that lies in a group, sorted.
fn names(group: &Group, path: &Utf8Path, options: &OpenOptions) -> Result<Vec<String>> {
    let (groups, datasets) = group.member_names().map_err(|error| fault(path, &error))?;
    let mut names: Vec<String> = groups.into_iter().chain(datasets).collect();
    let bytes: usize = names.iter().map(|name| name.len() + size_of::<String>()).sum();
    let charged = options.meter().charge(bytes as u64);
    charged.map_err(|exceeded| ReadError::memory(path, format!("names in `{}`", group.name()), exceeded))?;
    names.sort_unstable();
    Ok(names)
}

/// The dataset of one video: the one that was asked for, a published name, or the only one there is.
fn only_dataset(group: &Group, path: &Utf8Path, options: &OpenOptions) -> Result<Dataset> {
    let names = names(group, path, options)?;
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
    let name = dataset.name();
    Ok(read_numbers(dataset, options).map_err(|fault| fault.of(name).at(path, &format!("`{name}`")))?)
}

fn read_numbers(dataset: &Dataset, options: &OpenOptions) -> Result<Features, Fault> {
    let head = head(dataset)?;
    rows_and_width(&head.shape)?;
    let stored = head.bytes().ok_or_else(|| format!("shape {:?} is too large", head.shape))? as u64;
    let chunk = dataset.chunks().unwrap_or_default().into_iter().map(u64::from);
    let chunk = chunk.fold(head.number.bytes() as u64, u64::saturating_mul);
    if stored.max(chunk) > options.largest.saturating_mul(2) {
        return Err(Fault::TooLarge(options.largest));
    }
    let meter = options.meter();
    // The numbers as the file has them stand beside the rows that are made of them.
    meter.charge(stored.saturating_add(chunk))?;
    let bytes = dataset.read_raw_bytes().map_err(|error| Fault::Wrong(error.to_string()))?;
    head.read(&mut bytes.as_slice(), &Room { meter: &meter, largest: options.largest })
}

/// What the file says about the numbers of a dataset.
fn head(dataset: &Dataset) -> Result<ArrayHead, Fault> {
    let (number, order) = match dataset.dtype() {
        Datatype::FloatingPoint { size: 2, byte_order } => (Number::F16, byte_order),
        Datatype::FloatingPoint { size: 4, byte_order } => (Number::F32, byte_order),
        Datatype::FloatingPoint { size: 8, byte_order } => (Number::F64, byte_order),
        other => {
            return Err(Fault::Wrong(format!(
                "holds {}, not floating-point numbers of 16, 32 or 64 bits",
                kind(other)
            )));
        }
    };
    let order = match order {
        Order::LittleEndian => ByteOrder::Little,
        Order::BigEndian => ByteOrder::Big,
    };
    let axis = |axis: &u64| usize::try_from(*axis).map_err(|_| format!("shape {:?} is too large", dataset.shape()));
    let shape = dataset.shape().iter().map(axis).collect::<Result<_, _>>()?;
    Ok(ArrayHead { number, order, axes: Axes::LastFastest, shape })
}

fn kind(datatype: &Datatype) -> String {
    match datatype {
        Datatype::FixedPoint { size, .. } => format!("whole numbers of {} bits", 8 * u32::from(*size)),
        Datatype::FloatingPoint { size, .. } => format!("floating-point numbers of {} bits", 8 * u32::from(*size)),
        Datatype::String { .. } | Datatype::VarLen { .. } => "text or lists of many lengths".to_owned(),
        _ => "compound or other values".to_owned(),
    }
}

fn fault(path: &Utf8Path, error: &Error) -> ReadError {
    ReadError::file(path, format!("HDF5: {error}"))
}
