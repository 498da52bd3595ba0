//! One picture of a video.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use cuemark_core::Progress;

use super::{call, output};
use crate::Result;

/// The frame at `seconds` of an open video as a JPEG of `width` pixels, height in proportion. Whatever lies at the name of the
/// file by now is not looked at; `path` is for messages. `None` where the video has no picture any more. The decoder is killed
/// when `progress` is stopped.
///
/// # Errors
/// When the video cannot be decoded there or `ffmpeg` is not there.
pub fn thumbnail(
    file: File,
    path: &Utf8Path,
    seconds: f64,
    width: usize,
    progress: &Progress,
) -> Result<Option<Vec<u8>>> {
    let mut command = call("ffmpeg");
    // The program inherits the open file; on Windows there is no name for that.
    let address = if cfg!(unix) { "file:/dev/fd/0".to_owned() } else { super::address(path)? };
    command.stdin(Stdio::from(file));
    command.args(["-ss", &format!("{:.3}", seconds.max(0.0)), "-i", &address, "-map", "0:v:0", "-frames:v", "1"]);
    command.args(["-threads", "1", "-vf", &format!("scale={}:-2", width.clamp(16, 1920))]);
    command.args(["-f", "mjpeg", "-q:v", "4", "-"]);
    let picture = output(&mut command, path, Duration::from_secs(20), 8 << 20, progress)?;
    Ok((!picture.is_empty()).then_some(picture))
}
