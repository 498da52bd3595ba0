//! A MessagePack map with an array as `msgpack-numpy` writes it: `{"features": {"nd": true, "type": "<f4", "shape": […], "data": …}}`.

use rmpv::ValueRef;
use rmpv::decode::read_value_ref;

use crate::Features;
use crate::array::{ArrayHead, Axes};
use crate::number::Number;

/// The array called `name`. The error says what is wrong.
pub(super) fn parse(mut bytes: &[u8], name: &str) -> Result<Features, String> {
    let value = read_value_ref(&mut bytes).map_err(|error| format!("is no MessagePack: {error}"))?;
    let array = entry(&value, name).ok_or_else(|| format!("has no `{name}`"))?;
    let field = |key: &str| entry(array, key).ok_or_else(|| format!("`{name}` has no `{key}`"));
    let descr = field("type")?;
    let descr = text(descr).and_then(|descr| std::str::from_utf8(descr).ok()).unwrap_or_default();
    let (number, order) =
        Number::from_numpy(descr).ok_or_else(|| format!("`{name}` holds `{descr}`, not f2, f4 or f8 numbers"))?;
    let ValueRef::Array(shape) = field("shape")? else { return Err(format!("`{name}`: `shape` is no list")) };
    let axis = |axis: &ValueRef<'_>| axis.as_u64().and_then(|axis| usize::try_from(axis).ok());
    let shape =
        shape.iter().map(axis).collect::<Option<_>>().ok_or_else(|| format!("`{name}`: `shape` is no shape"))?;
    let data = text(field("data")?).ok_or_else(|| format!("`{name}`: `data` is not bytes"))?;
    let head = ArrayHead { number, order, axes: Axes::LastFastest, shape };
    head.features(data).map_err(|problem| format!("`{name}`: {problem}"))
}

/// Keys are text or bytes, as the writer's version of Python had it.
fn entry<'a, 'b>(map: &'b ValueRef<'a>, key: &str) -> Option<&'b ValueRef<'a>> {
    let ValueRef::Map(entries) = map else { return None };
    entries.iter().find(|(name, _)| text(name) == Some(key.as_bytes())).map(|(_, value)| value)
}

fn text<'a>(value: &'a ValueRef<'_>) -> Option<&'a [u8]> {
    match value {
        ValueRef::Binary(bytes) => Some(bytes),
        ValueRef::String(text) => Some(text.as_bytes()),
        _ => None,
    }
}
