//! The head of a safetensors file, read without the numbers: its length in eight bytes, then JSON.

use std::io::Read;

use cuemark_formats::Meter;
use cuemark_formats::json::weight;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::fault::Fault;

/// What the safetensors crate accepts, in bytes.
const LONGEST: u64 = 100_000_000;

/// Which tensors there are, and where.
pub(crate) struct Head {
    metadata: Metadata,
    names: Vec<String>,
    /// Where the numbers begin, in bytes from the start of the file.
    pub(crate) data_start: u64,
}

impl Head {
    /// Reads the head of a file of `length` bytes and checks all of it: tensors follow each other without gaps up to the end of
    /// the file, and each is as long as its shape.
    pub(crate) fn read(file: &mut dyn Read, length: u64, meter: &Meter) -> Result<Self, Fault> {
        let damaged = |problem: String| Fault::Wrong(format!("no safetensors file: {problem}"));
        let short = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged("its header is cut short".to_owned()),
            _ => Fault::Io(error),
        };
        let mut size = [0; size_of::<u64>()];
        file.read_exact(&mut size).map_err(short)?;
        let size = u64::from_le_bytes(size);
        if size > LONGEST {
            return Err(damaged(format!("its header claims {size} bytes")));
        }
        let header = meter.read_all(file.take(size), size)?;
        if header.len() as u64 != size {
            return Err(damaged("its header is cut short".to_owned()));
        }
        let text = std::str::from_utf8(&header).map_err(|_| damaged("its header is not UTF-8".to_owned()))?;
        // Entries of the table, their names once more, and the list that they are put in order in.
        meter.charge(weight(text).saturating_mul(2))?;
        let metadata: Metadata = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let data_start = size + size_of::<u64>() as u64;
        let names = metadata.offset_keys();
        let ends = names.last().and_then(|name| metadata.info(name)).map_or(0, |info| info.data_offsets.1 as u64);
        let mut before = 0;
        for name in &names {
            let Some(info) = metadata.info(name) else { continue };
            let (start, end) = info.data_offsets;
            let bits = info.shape.iter().try_fold(info.dtype.bitsize(), |bits, axis| bits.checked_mul(*axis));
            let bytes = bits.filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
            if start != before || end < start || bytes != Some(end - start) {
                return Err(damaged(format!("`{}` does not lie where it should", crate::fault::shorten(name))));
            }
            before = end;
        }
        if data_start.checked_add(ends) != Some(length) {
            return Err(damaged(format!("it has {length} bytes, its header says {}", data_start.saturating_add(ends))));
        }
        Ok(Self { metadata, names, data_start })
    }

    /// Every tensor, in the order of the file.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.metadata.info(name)
    }

    /// The text under `key` in `__metadata__`.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.metadata.metadata().as_ref()?.get(key).map(String::as_str)
    }
}
