//! A MessagePack map with an array as `msgpack-numpy` writes it: `{"features": {"nd": true, "type": "<f4", "shape": […], "data": …}}`.

use rmpv::ValueRef;
use rmpv::decode::read_value_ref;

use crate::Features;
use crate::array::{ArrayHead, Axes, Room};
use crate::fault::Fault;
use crate::number::Number;

/// The array called `name`.
pub(super) fn parse(mut bytes: &[u8], name: &str, room: &Room<'_>) -> Result<Features, Fault> {
    room.meter.charge(values(bytes).saturating_mul(2 * size_of::<(ValueRef<'_>, ValueRef<'_>)>() as u64))?;
    let value = read_value_ref(&mut bytes).map_err(|error| format!("is no MessagePack: {error}"))?;
    let array = entry(&value, name).ok_or_else(|| format!("has no `{name}`"))?;
    let field = |key: &str| entry(array, key).ok_or_else(|| format!("`{name}` has no `{key}`"));
    let descr = field("type")?;
    let descr = text(descr).and_then(|descr| std::str::from_utf8(descr).ok()).unwrap_or_default();
    let (number, order) =
        Number::from_numpy(descr).ok_or_else(|| format!("`{name}` holds `{descr}`, not f2, f4 or f8 numbers"))?;
    let ValueRef::Array(shape) = field("shape")? else { return Err(format!("`{name}`: `shape` is no list").into()) };
    let axis = |axis: &ValueRef<'_>| axis.as_u64().and_then(|axis| usize::try_from(axis).ok());
    let shape =
        shape.iter().map(axis).collect::<Option<_>>().ok_or_else(|| format!("`{name}`: `shape` is no shape"))?;
    let data = text(field("data")?).ok_or_else(|| format!("`{name}`: `data` is not bytes"))?;
    let head = ArrayHead { number, order, axes: Axes::LastFastest, shape };
    head.read(&mut { data }, room).map_err(|fault| fault.of(name))
}

/// How many values `bytes` hold: MessagePack is a plain row of them, whatever lies inside what. Each may be as short as one
/// byte and becomes a value of ours.
fn values(bytes: &[u8]) -> u64 {
    let length = |at: usize, digits: usize| {
        let digits = bytes.get(at + 1..at + 1 + digits).unwrap_or_default();
        digits.iter().fold(0usize, |length, digit| (length << 8) | usize::from(*digit))
    };
    let (mut at, mut count) = (0usize, 0);
    while let Some(marker) = bytes.get(at) {
        count += 1;
        let content = match marker {
            0xa0..=0xbf => usize::from(marker & 0x1f),
            // Bytes and texts, then what a program adds to the format, then numbers, then the heads of lists and maps.
            0xc4 | 0xd9 => 1 + length(at, 1),
            0xc5 | 0xda => 2 + length(at, 2),
            0xc6 | 0xdb => 4 + length(at, 4),
            0xc7 => 2 + length(at, 1),
            0xc8 => 3 + length(at, 2),
            0xc9 => 5 + length(at, 4),
            0xcc | 0xd0 => 1,
            0xcd | 0xd1 | 0xd4 | 0xdc | 0xde => 2,
            0xd5 => 3,
            0xca | 0xce | 0xd2 | 0xdd | 0xdf => 4,
            0xd6 => 5,
            0xcb | 0xcf | 0xd3 => 8,
            0xd7 => 9,
            0xd8 => 17,
            _ => 0,
        };
        at = at.saturating_add(1 + content);
    }
    count
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
