//! One picture of a video.

use std::time::Duration;

use camino::Utf8Path;

use super::{DAMAGED, address, call, fault, output};
use crate::Result;

/// The frame at `seconds` as a JPEG of `width` pixels, height in proportion.
///
/// # Errors
/// When the video cannot be decoded there or `ffmpeg` is not there.
pub fn thumbnail(path: &Utf8Path, seconds: f64, width: usize) -> Result<Vec<u8>> {
    let mut command = call("ffmpeg");
    command.args([
        "-ss",
        &format!("{:.3}", seconds.max(0.0)),
        "-i",
        &address(path)?,
        "-map",
        "0:v:0",
        "-frames:v",
        "1",
    ]);
    command.args(["-threads", "1", "-vf", &format!("scale={}:-2", width.clamp(16, 1920))]);
    command.args(["-f", "mjpeg", "-q:v", "4", "-"]);
    let picture = output(&mut command, path, Duration::from_secs(20), 8 << 20)?;
    if picture.is_empty() {
        return Err(fault(path, format!("has no picture at {seconds} s"), DAMAGED));
    }
    Ok(picture)
}
