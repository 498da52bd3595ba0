//! Whether a download works where nothing else is: in an empty folder here, and in bare Debian systems.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::root::{INSIDE, Root};
use super::{megabytes, output, peers};
use crate::process::{scratch_folder, watch, workspace};

/// Truth, predictions, and a figure that is right for them.
const FIXTURES: [&str; 2] = ["fixtures/your-predictions/truth.jsonl", "fixtures/your-predictions/cuemark.jsonl"];
const FIGURE: &str = "75.00";

/// A server that has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most that opening the package and an index may take, in seconds.
const IMPORT_S: f64 = 0.2;
const OPEN_S: f64 = 0.5;

/// Says how long the package and an index take to open.
const OPENING: &str = "\
import time
a = time.perf_counter()
import cuemark
b = time.perf_counter()
cuemark.Index('demo/index')
print(f'{b - a:.3f} {time.perf_counter() - b:.3f}')
";

/// `cargo xtask try FILE… [--peers]`
pub(crate) fn run(options: &[&str]) -> Result<ExitCode> {
    let mut held = true;
    let (flags, files): (Vec<&str>, Vec<&str>) = options.iter().copied().partition(|word| word.starts_with("--"));
    if files.is_empty() || flags.iter().any(|flag| *flag != "--peers") {
        bail!("`cargo xtask try` wants archives or wheels, and perhaps --peers");
    }
    for file in files {
        let file = fs::canonicalize(file).with_context(|| file.to_owned())?;
        held &= if flags.is_empty() { tried(&file)? } else { peers::beside(&file, &bookworm()?)? };
    }
    Ok(ExitCode::from(u8::from(!held)))
}

fn bookworm() -> Result<Root> {
    Root::all()?.into_iter().find(|root| root.release == "bookworm").context("there is no bookworm")
}

/// Where something is tried.
enum Place {
    /// An empty folder of this machine.
    Here(PathBuf),
    /// A bare system, and the same folder from outside.
    Bare(Root, PathBuf),
}

impl Place {
    fn folder(&self) -> &Path {
        match self {
            Self::Here(folder) | Self::Bare(_, folder) => folder,
        }
    }

    /// A path of the folder as a command there knows it.
    fn inside(&self, name: &str) -> String {
        match self {
            Self::Here(folder) => folder.join(name).display().to_string(),
            Self::Bare(..) => format!("{INSIDE}/{name}"),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        match self {
            Self::Here(folder) => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]).current_dir(folder);
                // pip is told by the environment how to reach its index; the program needs nothing of it.
                if !words[0].ends_with("python") && !words[0].ends_with("python3") {
                    command.env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin");
                }
                command
            }
            Self::Bare(root, _) => root.command(words),
        }
    }
}

/// Whether everything that was tried with an archive or a wheel works, here and in every bare system.
pub(super) fn tried(file: &Path) -> Result<bool> {
    println!("\n== {}: {:.1} MB", file.file_name().unwrap_or_default().to_string_lossy(), megabytes(file)?);
    let here = scratch_folder("tried")?;
    fs::remove_dir_all(&here)?;
    fs::create_dir_all(&here)?;
    let mut held = tried_in(file, &Place::Here(here))?;
    for root in Root::all()? {
        println!("\n== in a bare {}", root.release);
        let folder = root.empty()?;
        held &= tried_in(file, &Place::Bare(root, folder))?;
    }
    Ok(held)
}

fn is_wheel(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "whl")
}

fn tried_in(file: &Path, place: &Place) -> Result<bool> {
    for (fixture, name) in FIXTURES.into_iter().zip(["truth.jsonl", "mine.jsonl"]) {
        fs::copy(workspace().join(fixture), place.folder().join(name))?;
    }
    let program = if is_wheel(file) {
        installed(file, place)?
    } else {
        output(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(place.folder()))?;
        place.inside("cuemark/bin/cuemark")
    };
    let mut held = step(place, &[&program, "--version"], "cuemark ")?;
    held &= step(place, &[&program, "eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl"], FIGURE)?;
    held &= step(place, &[&program, "demo", "--quick", "--out", "demo"], "report")?;
    held &= step(place, &[&program, "search", "demo/index", "a red ball spins", "--least", "0"], "because of")?;
    held &= served(place, &program)?;
    if is_wheel(file) {
        held &= opened(place)?;
        held &= step(place, &[&place.inside("venv/bin/python"), "-m", "cuemark", "--version"], "cuemark ")?;
        held &= uvx(place, &name_of(file)?)?;
    }
    Ok(held)
}

/// Runs one command, says how long it took, and whether it ended well and said `wanted`.
fn step(place: &Place, words: &[&str], wanted: &str) -> Result<bool> {
    println!("\n$ {}", words.join(" "));
    let begin = Instant::now();
    let watched = watch(&mut place.command(words))?;
    println!("# {:.1} s", begin.elapsed().as_secs_f64());
    let held = watched.ok && watched.output.contains(wanted);
    if !held {
        println!("# FAILED");
    }
    Ok(held)
}

fn name_of(file: &Path) -> Result<String> {
    let name = file.file_name().and_then(|name| name.to_str());
    Ok(name.with_context(|| format!("{} has no name", file.display()))?.to_owned())
}

/// Installs a wheel into an environment of its own, and tells where the program lies.
fn installed(wheel: &Path, place: &Place) -> Result<String> {
    let name = name_of(wheel)?;
    fs::copy(wheel, place.folder().join(&name))?;
    let (environment, python) = (place.inside("venv"), place.inside("venv/bin/python"));
    let wheel = place.inside(&name);
    let pip = [python.as_str(), "-m", "pip", "install", "--no-cache-dir", &wheel];
    if !step(place, &["python3", "-m", "venv", &environment], "")? || !step(place, &pip, "cuemark")? {
        bail!("the wheel cannot be installed");
    }
    println!("# {:.1} MB installed, without what it needs", size(&package(place)?)? as f64 / 1e6);
    Ok(place.inside("venv/bin/cuemark"))
}

/// The folder of the installed package, from outside.
fn package(place: &Place) -> Result<PathBuf> {
    for entry in fs::read_dir(place.folder().join("venv/lib"))? {
        let package = entry?.path().join("site-packages/cuemark");
        if package.is_dir() {
            return Ok(package);
        }
    }
    bail!("pip installed no package")
}

/// Bytes of all files below a folder.
pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() { size(&entry.path())? } else { data.len() };
    }
    Ok(bytes)
}

/// How long `import cuemark` and `Index(…)` take: three times, of which the best counts, since the first reads the disk.
fn opened(place: &Place) -> Result<bool> {
    let python = place.inside("venv/bin/python");
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let told = output(&mut place.command(&[&python, "-c", OPENING]))?;
        let told = String::from_utf8_lossy(&told);
        let (import, open) = told.trim().split_once(' ').with_context(|| format!("Python said `{told}`"))?;
        println!("# import cuemark {import} s, Index(…) {open} s");
        best = (best.0.min(import.parse()?), best.1.min(open.parse()?));
    }
    let held = best.0 < IMPORT_S && best.1 < OPEN_S;
    if !held {
        println!("# FAILED: {IMPORT_S} s and {OPEN_S} s are wanted");
    }
    Ok(held)
}

/// Whether `cuemark serve` answers `/api/v1/health`.
fn served(place: &Place, program: &str) -> Result<bool> {
    // Free now; nobody else asks for it in between.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    println!("\n$ {program} serve demo/index --listen {port} &\n$ GET /api/v1/health");
    let begin = Instant::now();
    let mut command = place.command(&[program, "serve", "demo/index", "--listen", &port.to_string()]);
    let mut server = Server(command.stdout(Stdio::null()).spawn()?);
    while begin.elapsed() < PATIENCE {
        if let Some(ended) = server.0.try_wait()? {
            println!("# FAILED: the server ended: {ended}");
            return Ok(false);
        }
        if let Ok(answer) = health(port) {
            let held = answer.starts_with("HTTP/1.1 200");
            println!("{}\n# {:.1} s", answer.lines().last().unwrap_or_default(), begin.elapsed().as_secs_f64());
            return Ok(held);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("# FAILED: no answer within {} s", PATIENCE.as_secs());
    Ok(false)
}

/// A server that goes when nobody asks it any more.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn health(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /api/v1/health HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// `uvx --from WHEEL cuemark eval …`, with nothing in its cache. How to reach a registry is the system's business, as it is for
/// pip: uv by itself trusts a list of its own, which knows nothing of a registry behind a company's or a sandbox's certificate.
fn uvx(place: &Place, wheel: &str) -> Result<bool> {
    let pip = [&place.inside("venv/bin/python"), "-m", "pip", "install", "--no-cache-dir", "--quiet", "uv"];
    if !step(place, &pip, "")? {
        return Ok(false);
    }
    let (program, wheel) = (place.inside("venv/bin/uvx"), place.inside(wheel));
    let uvx = [program.as_str(), "--system-certs", "--from", &wheel];
    let eval = ["cuemark", "eval", "--truth", "truth.jsonl", "--pred", "mine.jsonl"];
    step(place, &[&uvx[..], &eval].concat(), FIGURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_when_it_ends_well_and_says_what_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let here = Place::Here(folder.path().to_owned());
        assert!(step(&here, &["/bin/sh", "-c", "echo 75.00"], FIGURE).unwrap());
        assert!(!step(&here, &["/bin/sh", "-c", "echo 74.00"], FIGURE).unwrap());
        assert!(!step(&here, &["/bin/sh", "-c", "echo 75.00; exit 1"], FIGURE).unwrap());
    }

    #[test]
    fn a_server_that_ends_or_answers_with_an_error_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let here = Place::Here(folder.path().to_owned());
        assert!(!served(&here, "/bin/false").unwrap());
    }

    #[test]
    fn a_folder_is_as_large_as_its_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), "12345").unwrap();
        fs::write(folder.path().join("c"), "1").unwrap();
        assert_eq!(size(folder.path()).unwrap(), 6);
    }
}
