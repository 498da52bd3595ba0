//! A pickled tree of NumPy arrays, as Flax and Haiku checkpoints are: dictionaries of dictionaries, arrays at the ends.
//!
//! An array is pickled as a call of `_reconstruct` whose state is version, shape, type, order of the axes and the bytes.

use super::{Collected, Strided};
use crate::number::Number;
use crate::pickle::{Id, Pickle, Value};

/// Levels of a tree; published ones have fewer than ten.
const DEEPEST: usize = 64;
/// Dictionaries and arrays; bounds trees whose branches share their ends.
const MOST_NODES: usize = 1 << 20;

pub(super) fn read(bytes: &[u8], tensors: &mut Collected) -> Result<(), String> {
    let pickle = Pickle::parse(bytes)?;
    refuse_unknown_calls(&pickle)?;
    let mut waiting = vec![(String::new(), pickle.root, 0)];
    let mut nodes = 0;
    while let Some((path, id, depth)) = waiting.pop() {
        nodes += 1;
        if depth > DEEPEST || nodes > MOST_NODES {
            return Err("its tree of arrays is deeper or larger than any published one".to_owned());
        }
        if let Value::Dict(entries) = pickle.value(id) {
            for (key, value) in entries.iter().rev() {
                let key = match pickle.value(*key) {
                    Value::Text(key) => key.clone(),
                    Value::Whole(key) => key.to_string(),
                    _ => return Err(format!("`{path}`: a key is neither text nor a number")),
                };
                let path = if path.is_empty() { key } else { format!("{path}/{key}") };
                waiting.push((path, *value, depth + 1));
            }
        } else if let Some((layout, place)) = array(&pickle, id) {
            let numbers = bytes.get(place).unwrap_or_default();
            tensors.add(path, &layout, numbers)?;
        }
    }
    Ok(())
}

/// Nothing would be run anyway; but a file that asks for it is no weight file.
pub(super) fn refuse_unknown_calls(pickle: &Pickle) -> Result<(), String> {
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
            Err(format!("its pickle wants to call `{name}`, which makes no tensor: refused, nothing of it was run"))
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
