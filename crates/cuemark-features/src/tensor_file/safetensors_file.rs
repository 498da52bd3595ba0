//! Safetensors: the length of a JSON header, the header, the numbers.

use std::io::{Read, Seek};

use safetensors::Dtype;

use super::{Collected, Strided};
use crate::fault::Fault;
use crate::number::{ByteOrder, Number};
use crate::safetensors_head::Head;

pub(super) fn read(mut file: impl Read + Seek, length: u64, tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let head = Head::read(&mut file, length, tensors.meter)?;
    // In the order of the file, so that reading goes forwards.
    for name in head.names() {
        let Some(info) = head.info(name) else { continue };
        let number = match info.dtype {
            Dtype::F16 => Number::F16,
            Dtype::BF16 => Number::Bf16,
            Dtype::F32 => Number::F32,
            Dtype::F64 => Number::F64,
            _ => continue,
        };
        let layout = Strided::dense(number, ByteOrder::Little, info.shape.clone());
        let (start, end) = info.data_offsets;
        file.seek(std::io::SeekFrom::Start(head.data_start + start as u64)).map_err(Fault::Io)?;
        let size = (end - start) as u64;
        let bytes = tensors.meter.read_all(file.by_ref().take(size), size)?;
        tensors.add(name, &layout, &bytes)?;
        tensors.meter.release(bytes.len() as u64);
    }
    Ok(())
}
