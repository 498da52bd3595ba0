//! A pickled tree of NumPy arrays, as Flax and Haiku checkpoints are: dictionaries of dictionaries, arrays at the ends.
//!
//! An array is pickled as a call of `_reconstruct` whose state is version, shape, type, order of the axes and the bytes.

use super::{Collected, Strided};
use crate::fault::{Fault, shorten};
use crate::number::Number;
use crate::pickle::{Id, Pickle, Value};

/// Levels of a tree; published ones have fewer than ten.
const DEEPEST: usize = 64;
/// Dictionaries and arrays; bounds trees whose branches share their ends.
const MOST_NODES: usize = 1 << 20;

pub(super) fn read(bytes: &[u8], tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let pickle = Pickle::parse(bytes, tensors.meter)?;
    refuse_unknown_calls(&pickle)?;
    let mut waiting = vec![(String::new(), pickle.root, 0)];
    let mut nodes = 0;
    while let Some((path, id, depth)) = waiting.pop() {
        nodes += 1;
        if depth > DEEPEST || nodes > MOST_NODES {
            return Err("its tree of arrays is deeper or larger than any published one".into());
        }
        if let Value::Dict(entries) = pickle.value(id) {
            for (key, value) in entries.iter().rev() {
                // The way to each of them is spelled out, however many share its beginning.
                let (number, text) = match pickle.value(*key) {
                    Value::Text(key) => (String::new(), &**key),
                    Value::Whole(key) => (key.to_string(), ""),
                    _ => return Err(format!("`{}`: a key is neither text nor a number", shorten(&path)).into()),
                };
                tensors.meter.charge(waits(path.len() + 1 + number.len() + text.len()))?;
                let joint = if path.is_empty() { "" } else { "/" };
                // Not `format!`, which leaves as much room again at the end of a long path.
                waiting.push(([path.as_str(), joint, &number, text].concat(), *value, depth + 1));
            }
        } else if let Some((layout, place)) = array(&pickle, id) {
            let numbers = bytes.get(place).unwrap_or_default();
            tensors.add(&path, &layout, numbers)?;
        }
        tensors.meter.release(if depth == 0 { 0 } else { waits(path.len() + 1) });
    }
    Ok(())
}

/// Bytes that a branch takes while it waits, with the way to it spelled out.
pub(super) fn waits(path: usize) -> u64 {
    (2 * size_of::<(String, Id, usize)>() + path + 16) as u64
}

/// Nothing would be run anyway; but a file that asks for it is no weight file.
pub(super) fn refuse_unknown_calls(pickle: &Pickle) -> Result<(), Fault> {
    let known = |module: &str, name: &str| match module {
        "numpy.core.multiarray" | "numpy._core.multiarray" => matches!(name, "_reconstruct" | "scalar"),
        "numpy" => matches!(name, "ndarray" | "dtype"),
        "collections" => name == "OrderedDict",
        "torch._utils" => matches!(name, "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_parameter"),
        "torch" => matches!(name, "Size" | "device") || name.ends_with("Storage"),
        _ => false,
    };
    match pickle.unknown_call(known) {
        Some(name) => {
            Err(format!("its pickle wants to call `{name}`, which makes no tensor: refused, nothing of it was run")
                .into())
        }
        None => Ok(()),
    }
}

/// The array that a value describes, and where its numbers lie; `None` for what is no array of floating-point numbers.
fn array(pickle: &Pickle, id: Id) -> Option<(Strided, std::ops::Range<usize>)> {
    let (_, state) = pickle.call_of(id, "_reconstruct")?;
    let &[_version, shape, kind, fortran, numbers] = pickle.tuple(state?)? else { return None };
    let (arguments, state) = pickle.call_of(kind, "dtype")?;
    let kind = pickle.text(*arguments.first()?)?;
    let order = pickle.tuple(state?)?.get(1).and_then(|order| pickle.text(*order))?;
    let (number, order) = Number::from_numpy(&format!("{order}{kind}"))?;
    let shape = pickle.wholes(shape)?;
    let Value::Bytes(place) = pickle.value(numbers) else { return None };
    let fortran = matches!(pickle.value(fortran), Value::Truth(true));
    let layout = if fortran { Strided::first_fastest } else { Strided::dense }(number, order, shape);
    Some((layout, place.clone()))
}
