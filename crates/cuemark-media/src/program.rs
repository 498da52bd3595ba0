//! Where the programs are, and the one function that starts them.
//!
//! What holds for every program started here:
//! - it opens local files only, and of those only containers that are named below: a playlist (HLS, DASH, concat) or an image
//!   sequence names other files, which would be opened with our rights;
//! - its environment is empty but for what a program needs to run: no token of ours is handed on;
//! - it waits for nobody at a terminal, and is a process group of its own, so that Ctrl-C reaches us and not it: a decoder that
//!   ends early on Ctrl-C would make a whole film look damaged;
//! - on Linux it may use so much processor time and address space and write so large a file; everywhere it has so long by the
//!   clock;
//! - its complaints are read as they come, and bounded;
//! - it is killed and waited for when its guard ([`Running`]) goes.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::Utf8PathBuf;
use cuemark_core::Progress;

use crate::running::Running;
use crate::{MediaError, OpenedVideo, Result};

/// Containers that are read, by ffmpeg's names of their demuxers; `mov` is MP4 too, `matroska` WebM. Sound alone is read so that
/// it can be told what is missing.
const CONTAINERS: &str = "mov,matroska,avi,mpegts,mpeg,mpegvideo,m4v,flv,ogg,asf,gif,mxf,dv,rm,nut,ivf,h264,hevc,mjpeg,\
                          yuv4mpegpipe,wav,mp3";

/// Variables that programs need to run at all: where they and their libraries are, the language, where to put scratch files.
const ENVIRONMENT: [&str; 13] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SystemRoot",
    "SystemDrive",
    "PATHEXT",
];

/// What a window and sound need beyond that.
const SCREEN: [&str; 9] = [
    "HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "DBUS_SESSION_BUS_ADDRESS",
    "PULSE_SERVER",
    "SDL_VIDEODRIVER",
];

/// The `ffmpeg`, `ffprobe` and `ffplay` programs.
#[derive(Debug, Clone)]
pub struct Ffmpeg {
    folder: Option<Utf8PathBuf>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ffmpeg,
    Ffprobe,
    Ffplay,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ffmpeg => "ffmpeg",
            Self::Ffprobe => "ffprobe",
            Self::Ffplay => "ffplay",
        }
    }
}

/// What a program reads.
pub(crate) enum Input<'a> {
    Nothing,
    Video(&'a OpenedVideo),
    /// Raw pictures that we write into its standard input.
    Pictures {
        size: [usize; 2],
        rate: f64,
    },
}

/// How far a program may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// By the clock; `None` where it is somebody's to wait as long as he likes.
    pub(crate) wall: Option<Duration>,
    /// Processor time of all its threads.
    pub(crate) processor: Duration,
    /// Bytes of address space; `None` for windows, whose drivers map what they like.
    pub(crate) memory: Option<u64>,
    /// Bytes of a file that it writes.
    pub(crate) file: u64,
}

/// Enough for frames of 8192 × 8192 pixels in sixteen threads, and no more than a machine has.
const MEMORY: u64 = 8 << 30;

impl Limits {
    /// For a call that should take seconds.
    pub(crate) fn brief(seconds: u64) -> Self {
        let wall = Duration::from_secs(seconds);
        Self { wall: Some(wall), processor: 4 * wall, memory: Some(MEMORY), file: 0 }
    }

    /// For decoding or encoding so many seconds of video: a minute of processor time a second is slow for the worst codec.
    pub(crate) fn lengthy(seconds: f64) -> Self {
        let processor = Duration::from_secs(600 + (60.0 * seconds.clamp(0.0, 1e6)) as u64);
        Self { wall: None, processor, memory: Some(MEMORY), file: 0 }
    }
}

/// A call: the program, what it reads, and its arguments on either side of that.
pub(crate) struct Call<'a> {
    pub(crate) program: Program,
    pub(crate) before: Vec<String>,
    pub(crate) input: Input<'a>,
    pub(crate) after: Vec<OsString>,
    pub(crate) limits: Limits,
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
        for program in [Program::Ffmpeg, Program::Ffprobe] {
            let limits = Limits::brief(20);
            let before = vec!["-version".to_owned()];
            let mut running =
                self.start(&Call { program, before, input: Input::Nothing, after: Vec::new(), limits })?;
            running.collect(1 << 16, &Progress::new())?;
            let (status, _) = running.end(&Progress::new())?;
            if !status.success() {
                let problem = format!("`{} -version` ended with {status}", program.name());
                return Err(MediaError::Program { program: program.name(), problem });
            }
        }
        Ok(())
    }

    /// Starts a program: **the only place that does**.
    ///
    /// # Errors
    /// When it is missing or may not be run.
    pub(crate) fn start(&self, call: &Call<'_>) -> Result<Running> {
        let name = call.program.name();
        let mut command = match &self.folder {
            Some(folder) => Command::new(folder.join(name)),
            None => Command::new(name),
        };
        command.args(&call.before);
        match (&call.input, call.program) {
            (Input::Nothing, _) => command.stdin(Stdio::null()),
            (Input::Video(video), _) => {
                let (stdin, address) = video.handed_over()?;
                command.args(["-protocol_whitelist", "file", "-format_whitelist", CONTAINERS]);
                command.args(["-i", &address]).stdin(stdin)
            }
            (Input::Pictures { size: [width, height], rate }, _) => {
                command.args(["-protocol_whitelist", "pipe", "-f", "rawvideo", "-pix_fmt", "rgb24"]);
                command.args(["-s", &format!("{width}x{height}"), "-r", &rate.to_string(), "-i", "pipe:0"]);
                command.stdin(Stdio::piped())
            }
        };
        command.args(&call.after).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The program is found by our search path, so it is looked up before the environment is emptied.
        command.env_clear().envs(kept(&ENVIRONMENT));
        // On a machine with many cores glibc would reserve more address space than the limit allows, a piece for each thread.
        command.env("MALLOC_ARENA_MAX", "4");
        if call.program == Program::Ffplay {
            command.envs(kept(&SCREEN));
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|error| {
            let problem = match error.kind() {
                ErrorKind::NotFound => "it is not installed".to_owned(),
                _ => error.to_string(),
            };
            MediaError::Program { program: name, problem }
        })?;
        limit(child.id(), &call.limits);
        let video = match &call.input {
            Input::Video(video) => Some(video.path()),
            Input::Nothing | Input::Pictures { .. } => None,
        };
        Ok(Running::new(name, video, child, call.limits.wall))
    }
}

fn kept(names: &'static [&'static str]) -> impl Iterator<Item = (&'static str, OsString)> {
    names.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)))
}

/// Sets the limits of a process of ours. It has hardly begun; what it did before counts all the same.
#[cfg(target_os = "linux")]
fn limit(process: u32, limits: &Limits) {
    use rlimit::{Resource, prlimit};
    let Ok(process) = i32::try_from(process) else { return };
    let seconds = limits.processor.as_secs().max(1);
    let bounds = [
        // A little more as the hard limit, so that the signal says what happened.
        (Resource::CPU, Some((seconds, seconds + 5))),
        (Resource::AS, limits.memory.map(|bytes| (bytes, bytes))),
        (Resource::FSIZE, Some((limits.file, limits.file))),
        (Resource::CORE, Some((0, 0))),
    ];
    for (resource, bound) in bounds {
        // Refused only where the limit is lower already, or the process has ended.
        let _ = bound.map(|bound| prlimit(process, resource, Some(bound), None));
    }
}

#[cfg(not(target_os = "linux"))]
fn limit(_process: u32, _limits: &Limits) {}
