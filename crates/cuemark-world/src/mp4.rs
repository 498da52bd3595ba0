//! Real video files of films.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, whole_message};
use cuemark_formats::{Overwrite, ReadError};
use cuemark_media::{Ffmpeg, MediaError, Pictures};

use crate::make::frame_noise;
use crate::render::FPS;
use crate::{Camera, Film, Result, WorldError};

/// Refuses early when there is no `ffmpeg`.
pub(crate) fn check_program() -> Result<()> {
    Ffmpeg::on_path().check().map_err(|error| fault(Utf8Path::new("videos"), error))
}

/// Where the file of one film lies in the folder of video files.
pub(crate) fn path(film: &Film, folder: &Utf8Path) -> Utf8PathBuf {
    folder.join(format!("{}.mp4", film.video))
}

/// Writes `folder/VIDEO.mp4`, whole or not at all; one that is there already is kept, unless it is to be replaced.
pub(crate) fn write(film: &Film, camera: &Camera, seed: u64, folder: &Utf8Path, overwrite: Overwrite) -> Result<()> {
    let path = path(film, folder);
    if overwrite == Overwrite::Never && path.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|source| ReadError::Write { path: folder.to_owned(), source })?;
    let mut frames = camera.shoot(film, frame_noise(seed, film)).peekable();
    let Some(size) = frames.peek().map(|frame| [frame.width, frame.height]) else { return Ok(()) };
    let (pictures, frames) = (Pictures { size, rate: FPS as f64 }, frames.map(|frame| frame.rgb));
    let written = Ffmpeg::on_path().encode(pictures, frames, &path, overwrite, &Progress::new());
    written.map_err(|error| fault(&path, error))
}

fn fault(path: &Utf8Path, error: MediaError) -> WorldError {
    match error {
        MediaError::File(error) => error.into(),
        MediaError::Video { problem, .. } => WorldError::Ffmpeg { path: path.to_owned(), problem },
        other => WorldError::Ffmpeg { path: path.to_owned(), problem: whole_message(&other) },
    }
}
