//! Other people's layouts: one file each, all read the same way.

mod bigfile;
mod csv;
mod detect;
mod files;
mod hdf5;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "lmdb")]
mod msgpack;
pub(crate) mod npy;
mod npz;
mod pt;
mod windows;

use std::fmt;
use std::str::FromStr;

use camino::Utf8Path;
use cuemark_core::VideoId;

use crate::foreign::OpenOptions;
use crate::{Features, Result};

/// How features lie on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Our own: a folder of safetensors shards with the recipe in their header.
    Safetensors,
    /// One HDF5 file, `[video]` or `[video][array]`.
    Hdf5,
    /// A folder of HDF5 files, one per video.
    Hdf5Files,
    /// A folder of `.npy` files, one per video.
    Npy,
    /// A folder of `.npy` files, one per window of frames: `VIDEO.avi_START_END.npy` (TALL).
    NpyWindows,
    /// A folder of `.npz` files, one per video.
    Npz,
    /// An LMDB folder; values are MessagePack maps or `.npz` bytes (CONQUER).
    Lmdb,
    /// One PyTorch file, a dictionary of tensors by video.
    Pt,
    /// A folder of PyTorch files, one per video.
    PtFiles,
    /// `feature.bin` with its three text files (MS-SL).
    BigFile,
    /// A folder of `.csv` files, one per video, one row a line.
    Csv,
}

impl Layout {
    /// Every layout, in the order the documentation lists them.
    pub const ALL: &[Self] = &[
        Self::Safetensors,
        Self::Hdf5,
        Self::Hdf5Files,
        Self::Npy,
        Self::NpyWindows,
        Self::Npz,
        Self::Lmdb,
        Self::Pt,
        Self::PtFiles,
        Self::BigFile,
        Self::Csv,
    ];

    /// What `--layout` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Hdf5 => "hdf5",
            Self::Hdf5Files => "hdf5-files",
            Self::Npy => "npy",
            Self::NpyWindows => "npy-windows",
            Self::Npz => "npz",
            Self::Lmdb => "lmdb",
            Self::Pt => "pt",
            Self::PtFiles => "pt-files",
            Self::BigFile => "bigfile",
            Self::Csv => "csv",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|layout| layout.name()).collect::<Vec<_>>().join(", ");
        let found = Self::ALL.iter().find(|layout| layout.name() == text);
        found.copied().ok_or_else(|| format!("`{text}` is no layout; there are {}", names()))
    }
}

pub use detect::detect;

/// One array per video: all that a foreign layout has to offer.
pub(crate) trait Arrays: fmt::Debug + Send + Sync {
    /// Every video, sorted and without repeats.
    fn videos(&self) -> &[VideoId];

    /// The rows of a video that [`Arrays::videos`] lists, whatever its numbers are.
    fn read(&self, video: &VideoId) -> Result<Features>;
}

/// Opens what lies at `path` in a layout that is not ours.
pub(crate) fn open(path: &Utf8Path, layout: Layout, options: &OpenOptions) -> Result<Box<dyn Arrays>> {
    Ok(match layout {
        Layout::Npy => Box::new(npy::open(path, options)?),
        Layout::NpyWindows => Box::new(windows::open(path, options)?),
        Layout::Npz => Box::new(npz::open(path, options)?),
        Layout::Pt => Box::new(pt::open_file(path, options)?),
        Layout::PtFiles => Box::new(pt::open_folder(path, options)?),
        Layout::BigFile => Box::new(bigfile::open(path, options)?),
        Layout::Csv => Box::new(csv::open(path, options)?),
        Layout::Hdf5 => Box::new(hdf5::open_file(path, options)?),
        Layout::Hdf5Files => Box::new(hdf5::open_folder(path, options)?),
        #[cfg(feature = "lmdb")]
        Layout::Lmdb => Box::new(lmdb::open(path, options)?),
        #[cfg(not(feature = "lmdb"))]
        Layout::Lmdb => return Err(crate::FeatureError::NotBuilt { path: path.to_owned(), layout, feature: "lmdb" }),
        Layout::Safetensors => unreachable!("`foreign::open` opens our own stores itself"),
    })
}
