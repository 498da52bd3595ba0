//! PyTorch files: one with a dictionary of tensors by video, or one per video.
//!
//! A zip archive with `NAME/data.pkl`, which describes the tensors, and `NAME/data/KEY`, which holds their numbers. The pickle
//! is taken apart, never run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, VideoId};
use cuemark_formats::ReadError;
use zip::ZipArchive;

use super::Arrays;
use super::files::{self, Files};
use crate::array::{ArrayHead, Axes};
use crate::fault::{Fault, shorten};
use crate::foreign::OpenOptions;
use crate::number::{ByteOrder, Number};
use crate::pickle::{Id, Pickle, Value};
use crate::{Features, Result};

/// Where one tensor's numbers lie, and how they make an array.
#[derive(Debug, Clone)]
struct Tensor {
    /// The archive's entry.
    entry: String,
    /// Numbers before the first.
    offset: usize,
    head: ArrayHead,
}

type Archive = ZipArchive<BufReader<File>>;

/// One file of many videos.
#[derive(Debug)]
pub(super) struct Pt {
    videos: Vec<VideoId>,
    tensors: BTreeMap<VideoId, Tensor>,
    path: Utf8PathBuf,
    archive: Mutex<Archive>,
    options: OpenOptions,
}

pub(super) fn open_folder(folder: &Utf8Path, options: &OpenOptions) -> Result<Files> {
    Files::open(folder, &["pt", "pth"], options, |path, options| {
        let (mut archive, found) = describe(path, options)?;
        let tensor = match found {
            Described::One(tensor) => tensor,
            Described::Many(mut many) => {
                let name = options.array.as_deref().unwrap_or("features");
                let only = (many.len() == 1 && options.array.is_none()).then(|| many.pop_first()).flatten();
                let named = |mut many: BTreeMap<String, Tensor>| many.remove(name);
                let fault = || {
                    ReadError::file(path, format!("holds no tensor `{name}`"))
                        .with_hint(Advice::say("name the tensor with ").setting("array"))
                };
                only.map(|(_, tensor)| tensor).or_else(|| named(many)).ok_or_else(fault)?
            }
        };
        numbers(&mut archive, &tensor, path, options)
    })
}

pub(super) fn open_file(path: &Utf8Path, options: &OpenOptions) -> Result<Pt> {
    let (archive, found) = describe(path, options)?;
    let Described::Many(tensors) = found else {
        let fault = ReadError::file(path, "holds one tensor, not one per video");
        return Err(fault.with_hint("name the folder it lies in").into());
    };
    let tensors: BTreeMap<VideoId, Tensor> =
        tensors.into_iter().map(|(name, tensor)| (VideoId::new(name), tensor)).collect();
    let (path, archive, options) = (path.to_owned(), Mutex::new(archive), options.clone());
    Ok(Pt { videos: tensors.keys().cloned().collect(), tensors, path, archive, options })
}

impl Arrays for Pt {
    fn videos(&self) -> &[VideoId] {
        &self.videos
    }

    fn read(&self, video: &VideoId) -> Result<Features> {
        let tensor = self.tensors.get(video);
        let tensor = tensor.ok_or_else(|| ReadError::file(&self.path, format!("holds no tensor `{video}`")))?;
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        numbers(&mut archive, tensor, &self.path, &self.options)
    }
}

enum Described {
    /// A tensor by itself.
    One(Tensor),
    /// A dictionary of them.
    Many(BTreeMap<String, Tensor>),
}

fn describe(path: &Utf8Path, options: &OpenOptions) -> Result<(Archive, Described)> {
    let fault = |problem: String| ReadError::file(path, problem);
    let damaged = |error: zip::result::ZipError| {
        fault(format!("no PyTorch file: {error}")).with_hint("files older than PyTorch 1.6 have to be saved again")
    };
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let pickled = archive.file_names().flatten().find(|name| name.ends_with("data.pkl")).map(|name| name.to_string());
    let pickled = pickled.ok_or_else(|| fault("no PyTorch file: it holds no `data.pkl`".to_owned()))?;
    let folder = pickled.trim_end_matches("data.pkl").to_owned();
    let meter = options.meter();
    let bytes = files::limited(archive.by_name(&pickled).map_err(damaged)?, path, "`data.pkl`", options, &meter)?;
    let pickle = Pickle::parse(&bytes, &meter).map_err(|fault| fault.at(path, "`data.pkl`"))?;
    if let Some(tensor) = tensor(&pickle, pickle.root, &folder) {
        return Ok((archive, Described::One(tensor)));
    }
    let Value::Dict(entries) = pickle.value(pickle.root) else {
        return Err(fault("holds neither a tensor nor a dictionary of tensors".to_owned()).into());
    };
    let mut tensors: BTreeMap<String, Tensor> = BTreeMap::new();
    for (key, value) in entries {
        let Some((name, tensor)) = pickle.text(*key).zip(tensor(&pickle, *value, &folder)) else { continue };
        // Twice: the name becomes the video's, which stands in a list as well.
        let bytes = 2 * (size_of::<(String, Tensor)>() + name.len()) + tensor.entry.len();
        meter
            .charge(bytes as u64)
            .map_err(|exceeded| ReadError::memory(path, format!("`data.pkl`, `{}`", shorten(name)), exceeded))?;
        tensors.insert(name.to_owned(), tensor);
    }
    if tensors.is_empty() {
        return Err(fault("holds no tensor that has a name".to_owned()).into());
    }
    Ok((archive, Described::Many(tensors)))
}

/// The tensor that a value describes: `_rebuild_tensor_v2(storage, offset, shape, stride, …)`.
fn tensor(pickle: &Pickle, id: Id, folder: &str) -> Option<Tensor> {
    let call = |name: &str| pickle.call_of(id, name);
    let (arguments, _) = call("_rebuild_tensor_v2").or_else(|| call("_rebuild_tensor"))?;
    let &[storage, offset, shape, stride, ..] = arguments else { return None };
    let Value::Persistent(description) = pickle.value(storage) else { return None };
    let &[_, class, key, ..] = pickle.tuple(*description)? else { return None };
    let Value::Class(class) = pickle.value(class) else { return None };
    let number = Number::from_torch(&class.name)?;
    let shape = pickle.wholes(shape)?;
    let axes = axes(&shape, &pickle.wholes(stride)?)?;
    let entry = format!("{folder}data/{}", pickle.text(key)?);
    let head = ArrayHead { number, order: ByteOrder::Little, axes, shape };
    Some(Tensor { entry, offset: pickle.whole(offset)?, head })
}

/// How numbers with such strides follow each other; `None` when they have gaps.
fn axes(shape: &[usize], stride: &[usize]) -> Option<Axes> {
    let dense = |axes: &mut dyn Iterator<Item = (&usize, &usize)>| {
        let mut step = 1usize;
        for (axis, stride) in axes {
            if *axis != 1 && *stride != step {
                return false;
            }
            step = step.saturating_mul(*axis);
        }
        true
    };
    if shape.len() != stride.len() {
        None
    } else if dense(&mut shape.iter().zip(stride).rev()) {
        Some(Axes::LastFastest)
    } else {
        dense(&mut shape.iter().zip(stride)).then_some(Axes::FirstFastest)
    }
}

fn numbers(archive: &mut Archive, tensor: &Tensor, path: &Utf8Path, options: &OpenOptions) -> Result<Features> {
    let name = shorten(&tensor.entry);
    let mut read = || -> Result<Features, Fault> {
        let mut entry = archive.by_name(&tensor.entry).map_err(|error| error.to_string())?;
        let start = (tensor.offset as u64).saturating_mul(tensor.head.number.bytes() as u64);
        if io::copy(&mut entry.by_ref().take(start), &mut io::sink()).map_err(Fault::Io)? < start {
            return Err("begins past the end of its numbers".into());
        }
        let meter = options.meter();
        let features = tensor.head.read(&mut entry, &files::room(&meter, options))?;
        files::finish(&mut entry, options)?;
        Ok(features)
    };
    read().map_err(|fault| fault.of(&name).at(path, &format!("`{name}`")).into())
}
