//! Named tensors as a file that `torch.load` opens, `weights_only=True` included.
//!
//! A zip archive without compression: a pickle of `{name: tensor}` in which tensors point to storages by number, and the
//! storages' bytes beside it.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::NamedTensor;

/// The folder inside of the archive; PyTorch takes any.
const INSIDE: &str = "weights";

/// The bytes of such a file.
pub(super) fn pack<'a>(
    tensors: impl Iterator<Item = (&'a String, &'a NamedTensor)> + Clone,
) -> std::io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut put = |name: &str, bytes: &[u8]| {
        archive.start_file(format!("{INSIDE}/{name}"), plain)?;
        archive.write_all(bytes)
    };
    put("data.pkl", &pickle(tensors.clone())?)?;
    put("byteorder", b"little")?;
    for (storage, (_, tensor)) in tensors.enumerate() {
        let bytes: Vec<u8> = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        put(&format!("data/{storage}"), &bytes)?;
    }
    put("version", b"3\n")?;
    Ok(archive.finish()?.into_inner())
}

fn pickle<'a>(tensors: impl Iterator<Item = (&'a String, &'a NamedTensor)>) -> std::io::Result<Vec<u8>> {
    let mut out = Pickle(b"\x80\x02}(".to_vec()); // protocol 2, a dictionary, its entries
    for (storage, (name, tensor)) in tensors.enumerate() {
        out.text(name)?;
        out.global("torch._utils", "_rebuild_tensor_v2");
        out.byte(b'(');
        // Where its numbers lie.
        out.byte(b'(');
        out.text("storage")?;
        out.global("torch", "FloatStorage");
        out.text(&storage.to_string())?;
        out.text("cpu")?;
        out.number(tensor.values.len())?;
        out.bytes(b"tQ"); // the tuple as a reference to outside of the pickle
        out.number(0)?;
        out.tuple(&tensor.shape)?;
        out.tuple(&strides(&tensor.shape))?;
        out.byte(0x89); // needs no gradient
        out.global("collections", "OrderedDict");
        out.bytes(b")R"); // no hooks
        out.bytes(b"tR"); // all of that to the function
    }
    out.bytes(b"u.");
    Ok(out.0)
}

/// Numbers from one place of an axis to the next, the last axis running fastest.
fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// Bytes of a pickle.
struct Pickle(Vec<u8>);

impl Pickle {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) -> std::io::Result<()> {
        let length = u32::try_from(text.len()).map_err(std::io::Error::other)?;
        self.byte(b'X');
        self.bytes(&length.to_le_bytes());
        self.bytes(text.as_bytes());
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) {
        self.bytes(format!("c{module}\n{name}\n").as_bytes());
    }

    fn number(&mut self, number: usize) -> std::io::Result<()> {
        let number = i64::try_from(number).map_err(std::io::Error::other)?;
        match i32::try_from(number) {
            Ok(number) => {
                self.byte(b'J');
                self.bytes(&number.to_le_bytes());
            }
            Err(_) => {
                self.bytes(&[0x8a, 8]);
                self.bytes(&number.to_le_bytes());
            }
        }
        Ok(())
    }

    fn tuple(&mut self, numbers: &[usize]) -> std::io::Result<()> {
        self.byte(b'(');
        numbers.iter().try_for_each(|number| self.number(*number))?;
        self.byte(b't');
        Ok(())
    }
}
