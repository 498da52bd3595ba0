//! Published checkpoints.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_features::tensor_file::{self, Tables};
use cuemark_tensor::{Device, Tensor};

use crate::Result;

/// Tables that published files keep their parameters in.
const TABLES: Tables<'_> = Tables::OutermostOr(&["state_dict", "model_state_dict", "model", "net"]);

/// Reads the floating-point parameters of a safetensors or PyTorch file by the reference's names, in single precision; nothing
/// in it is executed, and a pickle that asks for anything but tensors is refused.
///
/// A leading `module.`, which data-parallel training leaves, is dropped.
///
/// # Errors
/// When the file is neither, is damaged, or would pass the memory budget.
pub fn read(path: &Utf8Path, device: &Device) -> Result<HashMap<String, Tensor>> {
    let parameter = |(name, tensor): (String, tensor_file::NamedTensor)| {
        let name = name.strip_prefix("module.").unwrap_or(&name).to_owned();
        Ok((name, Tensor::from_vec(tensor.values, tensor.shape, device)?))
    };
    tensor_file::read_tables(path, TABLES)?.into_iter().map(parameter).collect()
}
