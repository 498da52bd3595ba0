//! Where the programs are, and how they are started.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{FeatureError, Result};

/// Containers that are read, by ffmpeg's names. Playlists (HLS, DASH, concat) are not among them: such a file would make ffmpeg
/// open whatever it names.
const CONTAINERS: &str =
    "mov,matroska,avi,mpegts,mpeg,mpegvideo,m4v,flv,ogg,asf,gif,mxf,dv,rm,nut,ivf,h264,hevc,mjpeg,yuv4mpegpipe,wav,mp3";

/// The `ffmpeg` and `ffprobe` programs.
#[derive(Debug, Clone)]
pub struct Ffmpeg {
    folder: Option<Utf8PathBuf>,
}

impl Ffmpeg {
    /// Those on the search path.
    pub fn on_path() -> Self {
        Self { folder: None }
    }

    /// Those in a folder.
    pub fn in_folder(folder: impl Into<Utf8PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Refuses early, before any work, when a program is missing.
    ///
    /// # Errors
    /// When one of them cannot be run.
    pub fn check(&self) -> Result<()> {
        for program in ["ffmpeg", "ffprobe"] {
            let mut command = self.command(program);
            let status = command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            let problem = match status {
                Ok(status) if status.success() => continue,
                Ok(status) => format!("`{program} -version` ended with {status}"),
                Err(error) => cannot_run(&error),
            };
            return Err(FeatureError::Program { program, problem });
        }
        Ok(())
    }

    /// A program that will read `path`; arguments before the input come from `before`, the rest is up to the caller.
    pub(super) fn reading(&self, program: &'static str, before: &[&str], path: &Utf8Path) -> Command {
        let mut command = self.command(program);
        command.args(before).args(["-protocol_whitelist", "file,pipe", "-format_whitelist", CONTAINERS]);
        // With the protocol in front, no name is taken for an option or for another address.
        command.arg("-i").arg(OsString::from(format!("file:{path}")));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn command(&self, program: &str) -> Command {
        match &self.folder {
            Some(folder) => Command::new(folder.join(program)),
            None => Command::new(program),
        }
    }
}

/// Starts a program, or says that it is missing.
pub(super) fn start(command: &mut Command, program: &'static str) -> Result<Child> {
    command.spawn().map_err(|error| FeatureError::Program { program, problem: cannot_run(&error) })
}

fn cannot_run(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it is not installed".to_owned(),
        _ => error.to_string(),
    }
}
