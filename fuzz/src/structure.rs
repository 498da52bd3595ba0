//! Changes that know what the bytes are, so that what is changed gets past the first check.

use cuemark_core::Rng;
use serde_json::{Map, Number, Value, json};

use crate::mutate::mutated;

/// `bytes` changed as what they are: JSON, lines of JSON, a file with a JSON header, a log with checksums; `None` when they
/// are none of these.
pub fn changed(rng: &mut Rng, target: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match target {
        "log" => Some(sealed(mutated(rng, bytes))),
        "checkpoints" | "features" => headed(rng, bytes),
        "http" => Some(lines(rng, bytes)),
        _ => json_text(rng, bytes),
    }
}

/// One value of a JSON document, or of one line of such, is another.
fn json_text(rng: &mut Rng, bytes: &[u8]) -> Option<Vec<u8>> {
    if let Ok(mut value) = serde_json::from_slice::<Value>(bytes) {
        change(rng, &mut value);
        return serde_json::to_vec(&value).ok();
    }
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let place = rng.below(lines.len());
    let mut value: Value = serde_json::from_slice(lines.get(place)?).ok()?;
    change(rng, &mut value);
    let line = serde_json::to_vec(&value).ok()?;
    if let Some(slot) = lines.get_mut(place) {
        *slot = &line;
    }
    Some(lines.join(&b'\n'))
}

/// Changes one value somewhere in `value`.
fn change(rng: &mut Rng, value: &mut Value) {
    let children = match &*value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if children > 0 && rng.below(4) > 0 {
        let place = rng.below(children);
        let child = match value {
            Value::Array(items) => items.get_mut(place),
            Value::Object(fields) => fields.values_mut().nth(place),
            _ => None,
        };
        if let Some(child) = child {
            change(rng, child);
        }
        return;
    }
    match value {
        Value::Array(items) if rng.below(2) == 0 => {
            let place = rng.below(items.len());
            match (rng.below(3), items.get(place).cloned()) {
                (0, Some(_)) => drop(items.remove(place)),
                (1, Some(item)) => items.insert(place, item),
                _ => items.push(odd(rng)),
            }
        }
        Value::Object(fields) if rng.below(2) == 0 => {
            let name = fields.keys().nth(rng.below(fields.len().max(1))).cloned().unwrap_or_default();
            match rng.below(3) {
                0 => drop(fields.shift_remove(&name)),
                1 => drop(fields.insert(name + "x", odd(rng))),
                _ => drop(fields.insert(name, odd(rng))),
            }
        }
        Value::Number(number) if rng.below(2) == 0 => {
            let is = number.as_f64().unwrap_or(0.0);
            let near = [is + 1.0, is - 1.0, -is, is * 1e3, is / 3.0, is.trunc()];
            let near = near.get(rng.below(near.len())).copied().unwrap_or(is);
            *value = Number::from_f64(near).map_or(Value::Null, Value::Number);
        }
        Value::String(text) if rng.below(2) == 0 => {
            *text = String::from_utf8_lossy(&mutated(rng, text.as_bytes())).into_owned();
        }
        _ => *value = odd(rng),
    }
}

/// A value that has broken programs before.
fn odd(rng: &mut Rng) -> Value {
    match rng.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(1e308),
        6 => json!(0.1 + 0.2),
        7 => json!(""),
        8 => json!("\u{0}\u{202e}ä"),
        9 => json!([]),
        10 => Value::Object(Map::new()),
        _ => json!([[0, -0.0], {"a": [1e-320]}]),
    }
}

/// A safetensors file whose JSON header is changed and whose length still fits it.
fn headed(rng: &mut Rng, bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (header, data) = rest.split_at_checked(length)?;
    let header = json_text(rng, header)?;
    let data = if rng.below(3) == 0 { mutated(rng, data) } else { data.to_vec() };
    Some([&(header.len() as u64).to_le_bytes()[..], &header, &data].concat())
}

/// A request of which a line is left out, doubled, moved, or put in from elsewhere.
fn lines(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    const OTHERS: &[&[u8]] = &[
        b"GET /api/v1/search?q=a%20ball&limit=3&exact=true HTTP/1.1",
        b"POST /api/v1/search HTTP/1.1",
        b"HEAD /api/v1/videos/film/media HTTP/1.0",
        b"GET /api/v1/videos/film/thumbnail?t=1e9&width=99999 HTTP/1.1",
        b"DELETE /api/v1/jobs/1 HTTP/1.1",
        b"GET /api/v1/videos?limit=18446744073709551615&after=film HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"Host: localhost",
        b"Host: 127.0.0.1:80:80",
        b"Content-Length: 40",
        b"Content-Type: application/json",
        b"Transfer-Encoding: chunked",
        b"Range: bytes=-1,2-3,9-",
        b"If-Range: \"x\"",
        b"Authorization: Bearer",
        b"Cookie: cuemark=; a=b",
        b"Sec-Fetch-Site: same-site",
        b"Origin: null",
        b"Connection: keep-alive, close",
        b"{\"q\":\"a ball\",\"limit\":-1,\"within\":{\"video\":\"film\"}}",
        b"",
    ];
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    for _ in 0..=rng.below(2) {
        let (from, to) = (rng.below(lines.len()), rng.below(lines.len() + 1));
        match rng.below(4) {
            0 if lines.len() > 1 => drop(lines.remove(from)),
            1 => {
                let line = lines.get(from).copied().unwrap_or_default();
                lines.insert(to, line);
            }
            2 => {
                let last = lines.len().saturating_sub(1);
                lines.swap(from.min(last), to.min(last));
            }
            _ => lines.insert(to, rng.pick(OTHERS).copied().unwrap_or_default()),
        }
    }
    let joined = lines.join(&b"\r\n"[..]);
    if rng.below(2) == 0 { joined } else { mutated(rng, &joined) }
}

/// A log whose checksums fit what stands in it now.
pub fn sealed(mut log: Vec<u8>) -> Vec<u8> {
    const ALIGN: usize = 64;
    const HEADER: usize = 40;
    let number = |log: &[u8], at: usize| {
        log.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes) as usize
    };
    let seal = |log: &mut [u8], from: usize, length: usize| {
        let Some(sum) = log.get(from..from + length).map(crc32fast::hash) else { return };
        if let Some(place) = log.get_mut(from + length..from + length + 4) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    };
    let put = |log: &mut [u8], at: usize, sum: u32| {
        if let Some(place) = log.get_mut(at..at + 4) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    };
    let width = number(&log, 16).min(1 << 16);
    // The headers of the records since the last commit, which repeats them.
    let mut headers: Vec<[u8; HEADER]> = Vec::new();
    let mut at = 0;
    while at + ALIGN <= log.len() {
        let begins = |magic: &[u8]| log.get(at..).is_some_and(|rest| rest.starts_with(magic));
        if begins(b"CUEMARKMOMENTS") {
            seal(&mut log, at, ALIGN - 4);
            at += ALIGN;
        } else if begins(b"CREC") {
            let (meta, rows) = (number(&log, at + 8).min(1 << 20), number(&log, at + 12).min(1 << 22));
            let words = number(&log, at + 24).min(1 << 26);
            let spans = at + (HEADER + meta).next_multiple_of(ALIGN);
            let vectors = spans + (16 * rows).next_multiple_of(ALIGN);
            let end = vectors + (2 * width * rows).next_multiple_of(ALIGN) + words.next_multiple_of(ALIGN);
            if let Some(sum) = log.get(at + HEADER..at + HEADER + meta).map(crc32fast::hash) {
                put(&mut log, at + 16, sum);
            }
            if let Some(sum) = log.get(spans..end).map(crc32fast::hash) {
                put(&mut log, at + 20, sum);
            }
            seal(&mut log, at, HEADER - 4);
            headers.extend(log.get(at..at + HEADER).and_then(|header| <[u8; HEADER]>::try_from(header).ok()));
            at = if end <= log.len() { end } else { at + ALIGN };
        } else if begins(b"CCMT") {
            let (records, voids) = (number(&log, at + 4).min(1024), number(&log, at + 8).min(1024));
            let size = ALIGN + (48 * records + 8 * voids).next_multiple_of(ALIGN);
            for (place, header) in headers.iter().take(records).enumerate() {
                let entry = at + ALIGN + 48 * place;
                if let Some(slot) = log.get_mut(entry..entry + HEADER) {
                    slot.copy_from_slice(header);
                }
            }
            if let Some(sum) = log.get(at + ALIGN..at + size).map(crc32fast::hash) {
                put(&mut log, at + ALIGN - 8, sum);
            }
            seal(&mut log, at, ALIGN - 4);
            let is_second = log.get(at + size..).is_none_or(|rest| !rest.starts_with(b"CCMT"));
            if is_second {
                headers.clear();
            }
            at += size;
        } else {
            at += ALIGN;
        }
    }
    log
}
