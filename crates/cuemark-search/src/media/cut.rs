//! One moment as a file of its own.

use std::time::Duration;

use camino::Utf8Path;
use cuemark_core::{Progress, Span};
use cuemark_formats::Overwrite;

use super::{DAMAGED, address, call, fault, output};
use crate::{Result, SearchError};

/// Cuts `span` out of a video into the new file `out`, exactly, by encoding it again; whole or not at all.
///
/// # Errors
/// When `out` is there and may not be replaced, or the video cannot be decoded.
pub fn cut(path: &Utf8Path, span: Span, out: &Utf8Path, overwrite: Overwrite) -> Result<()> {
    overwrite.check(out)?;
    let folder = out.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let unfinished = tempfile::tempdir_in(folder).map_err(SearchError::io("write", folder))?;
    let name = out.file_name().unwrap_or("moment.mp4");
    let Ok(written) = camino::Utf8PathBuf::from_path_buf(unfinished.path().join(name)) else {
        return Err(fault(out, "is no name for a file".to_owned(), DAMAGED));
    };
    let mut command = call("ffmpeg");
    command.args(["-ss", &format!("{:.3}", span.start()), "-i", &address(path)?, "-t", &format!("{:.3}", span.len())]);
    command.args(["-map", "0:v:0", "-map", "0:a?", "-movflags", "+faststart"]).arg(format!("file:{written}"));
    output(&mut command, path, Duration::from_secs(600), 1 << 16, &Progress::new())?;
    std::fs::rename(&written, out).map_err(SearchError::io("write", out))
}
