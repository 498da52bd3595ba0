//! Real video files, through the `ffmpeg` program.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, ReadError};

use crate::make::frame_noise;
use crate::render::FPS;
use crate::{Camera, Film, Result, WorldError};

/// Refuses early when there is no `ffmpeg`.
pub(crate) fn check_program() -> Result<()> {
    let run = Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match run {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(fault(Utf8Path::new("videos"), format!("`ffmpeg -version` ended with {status}"))),
        Err(error) => Err(fault(Utf8Path::new("videos"), cannot_run(&error))),
    }
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
    // A folder of its own, because ffmpeg wants a name that ends in `.mp4` and writes it piecemeal.
    let unfinished = tempfile::tempdir_in(folder).map_err(|source| ReadError::Write { path: path.clone(), source })?;
    let written = unfinished.path().join("film.mp4");
    let mut frames = camera.shoot(film, frame_noise(seed, film)).peekable();
    let Some((width, height)) = frames.peek().map(|frame| (frame.width, frame.height)) else { return Ok(()) };
    let mut child = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"])
        .args(["-s", &format!("{width}x{height}"), "-r", &FPS.to_string(), "-i", "-"])
        .args(["-c:v", "libx264", "-preset", "veryfast", "-crf", "24", "-pix_fmt", "yuv420p", "-threads", "1"])
        .args(["-movflags", "+faststart"])
        .arg(&written)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fault(&path, cannot_run(&error)))?;
    // When ffmpeg gives up it closes the pipe; its own words say more than the broken pipe does.
    let sent = child.stdin.take().map_or(Ok(()), |mut pipe| frames.try_for_each(|frame| pipe.write_all(&frame.rgb)));
    end(child, &path)?;
    sent.map_err(|error| fault(&path, format!("`ffmpeg` stopped reading: {error}")))?;
    Ok(std::fs::rename(&written, &path).map_err(|source| ReadError::Write { path: path.clone(), source })?)
}

/// Waits for ffmpeg and turns what it complains about into an error.
fn end(mut child: Child, path: &Utf8Path) -> Result<()> {
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        // What it says is for the message only: unreadable or overlong complaints are cut.
        let _ = stderr.take(4096).read_to_string(&mut said);
    }
    let status = child.wait().map_err(|error| fault(path, format!("`ffmpeg`: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(fault(path, format!("`ffmpeg` ended with {status}: {}", said.trim())))
}

fn cannot_run(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no program `ffmpeg`".to_owned(),
        _ => format!("cannot run `ffmpeg`: {error}"),
    }
}

fn fault(path: &Utf8Path, problem: String) -> WorldError {
    WorldError::Ffmpeg { path: path.to_owned(), problem }
}
