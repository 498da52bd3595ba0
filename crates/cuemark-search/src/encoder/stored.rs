//! Videos whose features lie in a store, and whose file is there too.

use camino::Utf8Path;
use cuemark_core::Progress;
use cuemark_media::{Ffmpeg, OpenedVideo};

use crate::Result;

/// How long the file states to be, in seconds; `None` without a file or a statement.
pub(super) fn stated_duration(file: Option<&Utf8Path>, progress: &Progress) -> Result<Option<f64>> {
    let Some(file) = file else { return Ok(None) };
    Ok(Ffmpeg::on_path().probe(&OpenedVideo::open(file)?, progress)?.duration)
}
