//! Published checkpoints.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_formats::ReadError;
use cuemark_tensor::{Device, Tensor};

use crate::Result;

/// Tables that published files keep their parameters in.
const TABLES: [&str; 4] = ["state_dict", "model_state_dict", "model", "net"];

/// Reads the parameters of a safetensors or PyTorch file by the reference's names; nothing in it is executed.
///
/// A leading `module.`, which data-parallel training leaves, is dropped.
///
/// # Errors
/// When the file is neither, or is damaged.
pub fn read(path: &Utf8Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    let fault = |error: candle_core::Error| ReadError::file(path, format!("cannot be read as weights: {error}"));
    let tensors: Vec<(String, Tensor)> = if path.extension() == Some("safetensors") {
        candle_core::safetensors::load(path, device).map_err(fault)?.into_iter().collect()
    } else {
        let plain = candle_core::pickle::read_all(path).map_err(fault)?;
        let inner = || TABLES.iter().find_map(|table| candle_core::pickle::read_all_with_key(path, Some(table)).ok());
        let found = if plain.is_empty() { inner().unwrap_or_default() } else { plain };
        found.into_iter().map(|(name, tensor)| Ok((name, tensor.to_device(device)?))).collect::<Result<_>>()?
    };
    Ok(tensors
        .into_iter()
        .map(|(name, tensor)| (name.strip_prefix("module.").unwrap_or(&name).to_owned(), tensor))
        .collect())
}
