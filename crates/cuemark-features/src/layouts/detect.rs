//! Which layout lies at a path.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_formats::ReadError;

use super::{Layout, windows};
use crate::Result;

fn layout_advice() -> Advice {
    let name = Advice::say("name the layout with ").setting("layout").and("; ");
    name.run("features convert --help").and(" lists them")
}

/// File endings, and the layout of a folder that holds such files.
const ENDINGS: &[(&str, Layout)] = &[
    ("safetensors", Layout::Safetensors),
    ("npy", Layout::Npy),
    ("npz", Layout::Npz),
    ("h5", Layout::Hdf5Files),
    ("hdf5", Layout::Hdf5Files),
    ("pt", Layout::PtFiles),
    ("pth", Layout::PtFiles),
    ("csv", Layout::Csv),
];

/// The layout of what lies at `path`: a file by its first bytes, a folder by what is in it.
///
/// # Errors
/// When there is nothing, nothing that we know, or files of several layouts.
pub fn detect(path: &Utf8Path) -> Result<Layout> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let fault = |problem: String| ReadError::file(path, problem).with_hint(layout_advice());
    if path.metadata().map_err(io)?.is_file() {
        let mut head = Vec::new();
        File::open(path).and_then(|file| file.take(8).read_to_end(&mut head)).map_err(io)?;
        return match head.as_slice() {
            [0x89, b'H', b'D', b'F', ..] => Ok(Layout::Hdf5),
            [b'P', b'K', ..] if matches!(path.extension(), Some("pt" | "pth" | "bin")) => Ok(Layout::Pt),
            _ => {
                Err(fault("is a file of no layout that holds many videos: name the folder it lies in".to_owned())
                    .into())
            }
        };
    }
    if path.join("data.mdb").is_file() {
        return Ok(Layout::Lmdb);
    }
    if path.join("feature.bin").is_file() {
        return Ok(Layout::BigFile);
    }
    let mut found = BTreeMap::new();
    let mut all_windows = true;
    for entry in path.read_dir_utf8().map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let Some((_, ending)) = name.rsplit_once('.') else { continue };
        if let Some((ending, layout)) = ENDINGS.iter().find(|(known, _)| *known == ending) {
            found.insert(layout.name(), (*ending, *layout));
            all_windows &= *layout != Layout::Npy || windows::parse(name).is_some();
        }
    }
    let endings: Vec<String> = found.values().map(|(ending, _)| format!("`.{ending}`")).collect();
    match found.into_values().collect::<Vec<_>>().as_slice() {
        [] => Err(fault("holds no features in a layout that we know".to_owned()).into()),
        [(_, Layout::Npy)] if all_windows => Ok(Layout::NpyWindows),
        [(_, layout)] => Ok(*layout),
        _ => Err(fault(format!("holds files of several layouts: {}", endings.join(", "))).into()),
    }
}
