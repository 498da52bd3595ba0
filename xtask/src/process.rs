//! Running other programs: watched by a person, or timed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The folder that holds the workspace's `Cargo.toml`; the working folder where `xtask` was carried to another machine.
pub(crate) fn workspace() -> &'static Path {
    let built = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if built.is_dir() { built } else { Path::new(".") }
}

/// Where published files lie: beside the checkout, or where `CUEMARK_SHARED` says. May not be there.
pub(crate) fn shared_folder() -> PathBuf {
    std::env::var_os("CUEMARK_SHARED").map_or_else(|| workspace().join("../shared"), PathBuf::from)
}

/// Where cargo puts what it builds: `cargo xtask` itself runs from `DIR/debug/xtask`.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let own = std::env::current_exe().context("where xtask lies")?;
    own.ancestors().nth(2).map(Path::to_owned).context("xtask lies outside of a build folder")
}

/// A folder for what chores make, below the build folder; made when it is not there.
pub(crate) fn scratch_folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder()?.join("xtask").join(name);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// `cargo ARGUMENTS`, to be run at the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(workspace());
    keep_our_package_from(&mut command);
    command
}

/// Keeps from a program that builds what `cargo run` told us of our own package.
///
/// Build scripts of others (ring's) look at these variables: they would run again, and all that stands on them be compiled again, whenever
/// a chore and a person take turns.
pub(crate) fn keep_our_package_from(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// What a program that a person watched has said, and whether it ended well.
pub(crate) struct Watched {
    /// Exit code 0.
    pub(crate) ok: bool,
    /// Standard output and standard error, line by line as they came.
    pub(crate) output: String,
}

/// Runs `command`, showing its output as it comes and keeping it.
pub(crate) fn watch(command: &mut Command) -> Result<Watched> {
    let name = format!("{command:?}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context(name.clone())?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = Mutex::new(String::new());
    std::thread::scope(|scope| {
        scope.spawn(|| copy_lines(stderr, std::io::stderr(), &output));
        copy_lines(stdout, std::io::stdout(), &output);
    });
    let ok = child.wait().context(name)?.success();
    let output = output.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Watched { ok, output })
}

fn copy_lines(from: Option<impl Read>, mut to: impl Write, kept: &Mutex<String>) {
    let Some(from) = from else { return };
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // A terminal that went away is no reason to stop counting.
        let _ = writeln!(to, "{line}");
        if let Ok(mut kept) = kept.lock() {
            kept.push_str(&line);
            kept.push('\n');
        }
    }
}

/// One timed run of a program.
pub(crate) struct Timed {
    /// From before it was started until it was gone, in seconds.
    pub(crate) wall_s: f64,
    /// Processor time of all its threads, in seconds; hardly moved by what else the machine does.
    pub(crate) cpu_s: f64,
    /// The most memory it held, in bytes.
    pub(crate) peak_bytes: u64,
    /// Standard output.
    pub(crate) stdout: String,
    /// The object after `timings ` on standard error, or null.
    pub(crate) timings: Value,
}

/// Runs `command` to its end with its output going to files in `folder`, so that nobody has to read along.
///
/// An exit code other than 0 is an error that shows what the program said.
pub(crate) fn time(command: &mut Command, folder: &Path) -> Result<Timed> {
    let name = format!("{command:?}");
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let begin = Instant::now();
    let ended = command.spawn().and_then(wait4::Wait4::wait4).context(name.clone())?;
    let wall_s = begin.elapsed().as_secs_f64();
    let (stdout, stderr) = (std::fs::read_to_string(out)?, std::fs::read_to_string(err)?);
    if !ended.status.success() {
        bail!("{name}: {}\n{}", ended.status, stderr.trim_end());
    }
    let timings = stderr.lines().find_map(|line| line.strip_prefix("timings "));
    let timings = timings.map(serde_json::from_str).transpose().with_context(|| format!("timings of {name}"))?;
    let cpu_s = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
    Ok(Timed { wall_s, cpu_s, peak_bytes: ended.rusage.maxrss, stdout, timings: timings.unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_run_gives_its_output_its_timings_and_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo other >&2; echo 'timings {\"read_s\": 0.5}' >&2"]);
        let timed = time(&mut shell, folder.path()).unwrap();
        assert_eq!(timed.stdout, "out\n");
        assert_eq!(timed.timings["read_s"], 0.5);
        assert!(timed.peak_bytes > 100_000, "{}", timed.peak_bytes);
        assert!(timed.wall_s > 0.0 && timed.wall_s < 60.0);
    }

    #[test]
    fn a_run_that_ends_badly_is_an_error_that_shows_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo no such flag >&2; exit 3"]);
        let error = time(&mut shell, folder.path()).err().unwrap();
        assert!(error.to_string().contains("no such flag"), "{error}");
    }

    #[test]
    fn what_a_watched_program_says_is_kept() {
        let watched = watch(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 1"])).unwrap();
        assert!(!watched.ok);
        assert!(watched.output.contains("one\n") && watched.output.contains("two\n"));
    }
}
