//! Where tests find their files, and how they call the program. A development dependency of the other crates, never part of the program.
//!
//! Small files of our own making lie in `fixtures/` and are always there. Published files lie in a folder beside the
//! checkout (`../shared`, or where `CUEMARK_SHARED` points) and may be absent: a test that wants one calls [`shared`]
//! and returns when it answers `None`; so does one that wants published weights and calls [`weights`]. `cargo xtask test` lists the tests that did so.

pub mod faults;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};

/// The environment variable that says where the published files lie.
pub const SHARED_VARIABLE: &str = "CUEMARK_SHARED";

/// The environment variable that says where weights are cached.
pub const CACHE_VARIABLE: &str = "CUEMARK_CACHE";

/// The environment variable that names the Python of tests that need one with packages.
pub const PYTHON_VARIABLE: &str = "CUEMARK_PYTHON";

/// The environment variable that names a file to which skipped tests add their names.
pub const SKIPPED_VARIABLE: &str = "CUEMARK_SKIPPED_LOG";

/// `fixtures/PATH` of the workspace.
pub fn fixture(path: &str) -> Utf8PathBuf {
    workspace().join("fixtures").join(path)
}

/// `PATH` among the published files; `None`, with a note of the calling test, when it is not there.
///
/// The note goes to standard error as `SKIPPED (no shared files): TEST` and to the file that `CUEMARK_SKIPPED_LOG` names.
pub fn shared(path: &str) -> Option<Utf8PathBuf> {
    let root = std::env::var(SHARED_VARIABLE).map_or_else(|_| workspace().join("../shared"), Utf8PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    // The test harness names the thread after the test.
    let thread = std::thread::current();
    let log = std::env::var(SKIPPED_VARIABLE).ok();
    note_skipped(thread.name().unwrap_or("unnamed test"), log.as_deref().map(Utf8Path::new));
    None
}

/// A cache that holds the weights `name`; `None`, with a note of the calling test, when they have not been pulled.
///
/// It is the one that `CUEMARK_CACHE` names, or the one into which `cargo xtask test` pulls what tests want.
pub fn weights(name: &str) -> Option<Utf8PathBuf> {
    let usual = || workspace().join("target/xtask/cache");
    let root = std::env::var(CACHE_VARIABLE).map_or_else(|_| usual(), Utf8PathBuf::from);
    if root.join("weights").join(name).is_dir() {
        return Some(root);
    }
    let thread = std::thread::current();
    let log = std::env::var(SKIPPED_VARIABLE).ok();
    let test = format!("{} (weights {name})", thread.name().unwrap_or("unnamed test"));
    note_skipped(&test, log.as_deref().map(Utf8Path::new));
    None
}

/// A Python that can import `module`; `None`, with a note of the calling test, when there is none.
///
/// It is the one that `CUEMARK_PYTHON` names, or the environment that `cargo xtask test` makes.
pub fn python(module: &str) -> Option<Utf8PathBuf> {
    let usual = || workspace().join("target/xtask-venv/bin/python");
    let python = std::env::var(PYTHON_VARIABLE).map_or_else(|_| usual(), Utf8PathBuf::from);
    let import = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if import.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let thread = std::thread::current();
    let log = std::env::var(SKIPPED_VARIABLE).ok();
    let test = format!("{} (Python package {module})", thread.name().unwrap_or("unnamed test"));
    note_skipped(&test, log.as_deref().map(Utf8Path::new));
    None
}

/// Notes that the calling test did without `what`, which was not there.
pub fn note_skipped_part(what: &str) {
    let thread = std::thread::current();
    let log = std::env::var(SKIPPED_VARIABLE).ok();
    let test = format!("{} ({what})", thread.name().unwrap_or("unnamed test"));
    note_skipped(&test, log.as_deref().map(Utf8Path::new));
}

/// A folder below the build folder for what is worth keeping between runs. It may not be there yet.
pub fn scratch(name: &str) -> Utf8PathBuf {
    workspace().join("target/xtask").join(name)
}

/// A program of ours as tests call it: what it prints depends neither on the terminal's width nor on this machine's cache.
pub fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    command.env("COLUMNS", "110").env(CACHE_VARIABLE, "/nowhere");
    command
}

/// Runs a program that must succeed, and hands out its standard output.
///
/// # Panics
/// With what it said on standard error, when it fails or cannot be started.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program should start");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("a program of ours should speak UTF-8")
}

/// Exit code, standard output and standard error, with the place of the fixtures on this machine taken out.
///
/// # Panics
/// When it was ended by a signal.
pub fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(fixture("").as_str(), "fixtures/");
    let code = output.status.code().expect("the program should end by itself");
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

fn workspace() -> &'static Utf8Path {
    Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[allow(clippy::print_stderr)] // Tests have no other way to tell a person that they checked nothing.
fn note_skipped(test: &str, log: Option<&Utf8Path>) {
    eprintln!("SKIPPED (no shared files): {test}");
    let Some(log) = log else { return };
    let file = OpenOptions::new().create(true).append(true).open(log);
    // One write per line, so that tests that run side by side do not mix their lines.
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{test}\n").as_bytes())) {
        eprintln!("cannot write `{log}`: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_lie_in_the_workspace() {
        assert!(fixture("").is_dir());
        assert!(workspace().join("Cargo.lock").is_file());
    }

    #[test]
    fn a_program_that_fails_is_told_of_with_its_code_and_both_of_its_voices() {
        let failing = |script: &str| Command::new("sh").args(["-c", script]).output().unwrap();
        let output = failing(&format!("echo {}; echo no >&2; exit 3", fixture("x")));
        assert_eq!(told(&output), "exit 3\n--- stdout\nfixtures/x\n--- stderr\nno\n");
        assert_eq!(succeed(Command::new("sh").args(["-c", "echo yes"])), "yes\n");
        let panic = std::panic::catch_unwind(|| succeed(Command::new("sh").args(["-c", "echo why >&2; exit 1"])));
        assert!(panic.unwrap_err().downcast_ref::<String>().unwrap().ends_with("why\n"));
    }

    #[test]
    fn skipped_tests_add_their_names_to_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = Utf8PathBuf::from_path_buf(folder.path().join("skipped")).unwrap();
        note_skipped("one", Some(&log));
        note_skipped("two", Some(&log));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\n");
    }
}
