//! Safetensors: the length of a JSON header, the header, the numbers.

use safetensors::{Dtype, SafeTensors};

use super::{Collected, Strided};
use crate::number::{ByteOrder, Number};

pub(super) fn read(bytes: &[u8], tensors: &mut Collected) -> Result<(), String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| format!("no safetensors file: {error}"))?;
    for (name, view) in file.iter() {
        let number = match view.dtype() {
            Dtype::F16 => Number::F16,
            Dtype::BF16 => Number::Bf16,
            Dtype::F32 => Number::F32,
            Dtype::F64 => Number::F64,
            _ => continue,
        };
        let layout = Strided::dense(number, ByteOrder::Little, view.shape().to_vec());
        tensors.add(name.to_owned(), &layout, view.data())?;
    }
    Ok(())
}
