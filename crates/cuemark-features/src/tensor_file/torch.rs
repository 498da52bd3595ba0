//! PyTorch's two kinds of file.
//!
//! Since 1.6 a zip archive: `NAME/data.pkl` describes the tensors, `NAME/data/KEY` holds the numbers of one storage. Before,
//! pickles one after the other (a magic number, a version, the machine, the tensors, the keys of the storages) and then, for
//! each key, how many numbers there are and the numbers themselves. Either way a tensor is a view of a storage: offset, shape,
//! strides.

use std::collections::HashMap;
use std::io::{Read, Seek};

use cuemark_formats::Meter;
use zip::ZipArchive;

use super::numpy_tree::{refuse_unknown_calls, waits};
use super::{Collected, Strided, Tables};
use crate::fault::{Fault, shorten};
use crate::number::{ByteOrder, Number};
use crate::pickle::{Id, Pickle, Value};

/// The pickled number that older files begin with.
pub(super) const LEGACY_MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
/// Dictionaries inside dictionaries: `{"state_dict": {…}}`, and no deeper than anybody goes.
const DEEPEST: usize = 4;
/// Dictionaries and tensors that are visited.
const MOST_NODES: usize = 1 << 20;

/// One tensor as a file describes it.
struct View<'a> {
    storage: &'a str,
    layout: Strided,
}

pub(super) fn read_zip(
    file: impl Read + Seek,
    length: u64,
    tables: Tables<'_>,
    tensors: &mut Collected<'_>,
) -> Result<(), Fault> {
    let damaged = |error: zip::result::ZipError| format!("no PyTorch file: {error}");
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let pickled = archive.file_names().flatten().find(|name| name.ends_with("data.pkl")).map(|name| name.to_string());
    let pickled = pickled.ok_or("no PyTorch file: the archive holds no `data.pkl`")?;
    let folder = pickled.trim_end_matches("data.pkl").to_owned();
    let meter = tensors.meter;
    let mut entry = |name: &str| -> Result<Vec<u8>, Fault> {
        let entry = archive.by_name(name).map_err(|error| format!("`{}`: {error}", shorten(name)))?;
        // PyTorch does not compress; a bomb that does is cut off at what the file itself weighs.
        let content = meter.read_all(entry.take(length + 1), 0).map_err(|unread| Fault::from(unread).of(name))?;
        if content.len() as u64 > length {
            return Err(format!("`{}` is larger than its file", shorten(name)).into());
        }
        Ok(content)
    };
    let pickle = Pickle::parse(&entry(&pickled)?, meter)?;
    // One storage at a time: tensors that share one are added together.
    let mut by_storage: HashMap<&str, Vec<(String, Strided)>> = HashMap::new();
    for (name, view) in views(&pickle, tables, meter)? {
        by_storage.entry(view.storage).or_default().push((name, view.layout));
    }
    for (storage, sharing) in by_storage {
        let numbers = entry(&format!("{folder}data/{storage}"))?;
        for (name, layout) in sharing {
            tensors.add(&name, &layout, &numbers)?;
        }
        meter.release(numbers.len() as u64);
    }
    Ok(())
}

pub(super) fn read_legacy(bytes: &[u8], tables: Tables<'_>, tensors: &mut Collected<'_>) -> Result<(), Fault> {
    let meter = tensors.meter;
    let (_, rest) = Pickle::parse_first(bytes, meter)?;
    let (_version, rest) = Pickle::parse_first(rest, meter)?;
    let (_machine, rest) = Pickle::parse_first(rest, meter)?;
    let (pickle, rest) = Pickle::parse_first(rest, meter)?;
    let (keys, mut rest) = Pickle::parse_first(rest, meter)?;
    let views = views(&pickle, tables, meter)?;
    let sizes = storage_sizes(&pickle);
    let Value::List(ids) = keys.value(keys.root) else { return Err("its list of storages is damaged".into()) };
    let mut storages: HashMap<&str, &[u8]> = HashMap::new();
    for id in ids {
        let key = keys.text(*id).ok_or("its list of storages is damaged")?;
        let size = sizes.get(key).ok_or_else(|| format!("nothing is said of storage `{}`", shorten(key)))?;
        let (count, after) = rest.split_first_chunk::<8>().ok_or("is cut short")?;
        let length = usize::try_from(u64::from_le_bytes(*count)).ok().and_then(|count| count.checked_mul(*size));
        let parts = length.and_then(|length| after.split_at_checked(length));
        let (numbers, after) = parts.ok_or_else(|| format!("is cut short in storage `{}`", shorten(key)))?;
        storages.insert(key, numbers);
        rest = after;
    }
    for (name, view) in views {
        let numbers = storages.get(view.storage);
        let numbers = numbers.ok_or_else(|| format!("`{}`: its numbers are not in the file", shorten(&name)))?;
        tensors.add(&name, &view.layout, numbers)?;
    }
    Ok(())
}

/// Bytes of one number, by storage: of every kind, since the numbers of older files lie one after the other.
fn storage_sizes(pickle: &Pickle) -> HashMap<&str, usize> {
    let size = |class: &str| {
        Some(match class {
            "DoubleStorage" | "LongStorage" | "ComplexFloatStorage" => 8,
            "FloatStorage" | "IntStorage" => 4,
            "HalfStorage" | "BFloat16Storage" | "ShortStorage" => 2,
            "CharStorage" | "ByteStorage" | "BoolStorage" => 1,
            _ => return None,
        })
    };
    let described = |description: Id| {
        let &[_, class, key, ..] = pickle.tuple(description)? else { return None };
        let Value::Class(class) = pickle.value(class) else { return None };
        Some((pickle.text(key)?, size(&class.name)?))
    };
    pickle.persistent().filter_map(described).collect()
}

/// Every floating-point tensor that is wanted, by name; values that are neither tensors nor dictionaries are passed over.
fn views<'p>(pickle: &'p Pickle, tables: Tables<'_>, meter: &Meter) -> Result<Vec<(String, View<'p>)>, Fault> {
    refuse_unknown_calls(pickle)?;
    let tables = match tables {
        Tables::All => return views_below(pickle, pickle.root, DEEPEST, meter),
        Tables::OutermostOr(tables) => tables,
    };
    let outermost = views_below(pickle, pickle.root, 1, meter)?;
    let Value::Dict(entries) = pickle.value(pickle.root) else { return Ok(outermost) };
    if !outermost.is_empty() {
        return Ok(outermost);
    }
    for table in tables {
        let named = entries.iter().rev().find(|(key, _)| pickle.text(*key) == Some(table));
        let inside = named.map(|(_, value)| views_below(pickle, *value, 1, meter)).transpose()?;
        if let Some(inside) = inside.filter(|inside| !inside.is_empty()) {
            return Ok(inside);
        }
    }
    Ok(Vec::new())
}

/// The tensors below the value `root`, which may lie in so many dictionaries.
fn views_below<'p>(
    pickle: &'p Pickle,
    root: Id,
    deepest: usize,
    meter: &Meter,
) -> Result<Vec<(String, View<'p>)>, Fault> {
    let mut found = Vec::new();
    let mut waiting = vec![(String::new(), root, 0)];
    let mut nodes = 0;
    while let Some((name, id, depth)) = waiting.pop() {
        nodes += 1;
        if nodes > MOST_NODES {
            return Err("holds more tensors than any published network".into());
        }
        if let Some(view) = view(pickle, id) {
            // What was counted while it waited is what its name takes from now on.
            meter.charge((2 * size_of::<(String, View<'_>)>() + 16 * view.layout.shape.len()) as u64)?;
            found.push((if name.is_empty() { "tensor".to_owned() } else { name }, view));
            continue;
        }
        if let Value::Dict(entries) = pickle.value(id)
            && depth < deepest
        {
            for (key, value) in entries.iter().rev() {
                let Some(key) = pickle.text(*key) else { continue };
                meter.charge(waits(name.len() + 1 + key.len()))?;
                // Not `format!`, which leaves as much room again at the end of a long name.
                let name = if name.is_empty() { key.to_owned() } else { [name.as_str(), ".", key].concat() };
                waiting.push((name, *value, depth + 1));
            }
        }
        meter.release(if depth == 0 { 0 } else { waits(name.len() + 1) });
    }
    Ok(found)
}

/// The tensor that a value describes: `_rebuild_tensor_v2(storage, offset, shape, stride, …)`, or a parameter around one.
fn view(pickle: &Pickle, id: Id) -> Option<View<'_>> {
    let inner = pickle.call_of(id, "_rebuild_parameter").and_then(|(arguments, _)| arguments.first().copied());
    let id = inner.unwrap_or(id);
    let call = |name: &str| pickle.call_of(id, name);
    let (arguments, _) = call("_rebuild_tensor_v2").or_else(|| call("_rebuild_tensor"))?;
    let &[storage, offset, shape, strides, ..] = arguments else { return None };
    let Value::Persistent(description) = pickle.value(storage) else { return None };
    let &[_, class, key, ..] = pickle.tuple(*description)? else { return None };
    let Value::Class(class) = pickle.value(class) else { return None };
    let layout = Strided {
        number: Number::from_torch(&class.name)?,
        order: ByteOrder::Little,
        offset: pickle.whole(offset)?,
        shape: pickle.wholes(shape)?,
        strides: pickle.wholes(strides)?,
    };
    Some(View { storage: pickle.text(key)?, layout })
}
