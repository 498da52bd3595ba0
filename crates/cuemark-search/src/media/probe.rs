//! How long a video is.

use std::time::Duration;

use camino::Utf8Path;
use cuemark_core::Progress;
use serde::Deserialize;

use super::{DAMAGED, address, call, fault, output};
use crate::Result;

/// What is known of a file before it is decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// **Seconds**.
    pub duration: f64,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    streams: Vec<Stream>,
    format: Option<Format>,
}

#[derive(Deserialize)]
struct Stream {
    width: Option<usize>,
    height: Option<usize>,
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Format {
    duration: Option<String>,
}

/// Looks at a file.
///
/// # Errors
/// When it is no video, has no length, or `ffprobe` is not there.
pub fn probe(path: &Utf8Path) -> Result<Probe> {
    let mut command = call("ffprobe");
    command.args(["-select_streams", "v:0", "-show_entries", "stream=width,height,duration:format=duration"]);
    command.args(["-of", "json", "-i", &address(path)?]);
    let told = output(&mut command, path, Duration::from_secs(30), 1 << 20, &Progress::new())?;
    let told: Told =
        serde_json::from_slice(&told).map_err(|error| fault(path, format!("ffprobe: {error}"), DAMAGED))?;
    let Some(stream) = told.streams.first() else {
        return Err(fault(path, "holds no picture".to_owned(), "only videos can be indexed"));
    };
    let seconds = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
    let duration = told.format.and_then(|format| seconds(&format.duration)).or_else(|| seconds(&stream.duration));
    match duration.filter(|duration| duration.is_finite() && *duration > 0.0) {
        Some(duration) => Ok(Probe { duration, width: stream.width.unwrap_or(0), height: stream.height.unwrap_or(0) }),
        None => Err(fault(path, "does not say how long it is".to_owned(), DAMAGED)),
    }
}
