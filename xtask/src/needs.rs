//! Programs that chores call and that a bare machine lacks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

/// One program, or one module of Python, and the Debian package that brings it.
struct Need {
    /// A program by its name, a module as `python3 -m NAME`.
    what: &'static str,
    package: &'static str,
    why: &'static str,
}

/// Everything the tests call beside cargo. Add a line when a test starts to need a program, and not before.
const TESTS: &[Need] = &[
    Need {
        what: "chromedriver",
        package: "chromium-driver",
        why: "drives the browser that opens reports and the search page",
    },
    Need { what: "chromium", package: "chromium", why: "the browser" },
    Need { what: "ffmpeg", package: "ffmpeg", why: "writes and decodes the world's videos" },
    VENV,
    Need { what: "tidy", package: "tidy", why: "validates the page of a report" },
];

/// Debian has Python without it: `python3` alone says nothing.
const VENV: Need = Need { what: "python3 -m ensurepip", package: "python3-venv", why: "makes environments of Python" };

/// What makes bare systems.
const DEBOOTSTRAP: Need =
    Need { what: "debootstrap", package: "debootstrap", why: "makes bare systems to try downloads in" };

/// What the tests call.
pub(crate) fn meet() -> Result<bool> {
    meet_all(TESTS)
}

/// What packs wheels and brings the linker for old systems.
pub(crate) fn meet_for_packing() -> Result<bool> {
    meet_all(&[VENV])
}

/// What makes bare systems.
pub(crate) fn meet_for_bare_systems() -> Result<bool> {
    meet_all(&[DEBOOTSTRAP])
}

/// Installs what is missing when it may, and says what to install when it may not.
///
/// Answers whether everything is there now.
fn meet_all(needs: &[Need]) -> Result<bool> {
    let missing = || needs.iter().filter(|need| !need.is_met());
    if missing().next().is_none() {
        return Ok(true);
    }
    for need in missing() {
        println!("`{}` is not installed ({})", need.what, need.why);
    }
    let packages: Vec<&str> = missing().map(|need| need.package).collect();
    if is_root()? && find_program("apt-get").is_some() {
        apt_get(&["update", "-qq"])?;
        apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat())?;
    } else {
        println!("install it with: apt-get install {}", packages.join(" "));
    }
    Ok(missing().next().is_none())
}

impl Need {
    fn is_met(&self) -> bool {
        let Some((python, module)) = self.what.split_once(" -m ") else { return find_program(self.what).is_some() };
        let found = Command::new(python).args(["-c", &format!("import {module}")]).output();
        found.is_ok_and(|done| done.status.success())
    }
}

/// Where `program` lies on the search path.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("id -u")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

/// A failure shows in what is still missing afterwards, so the exit code is not looked at.
fn apt_get(arguments: &[&str]) -> Result<()> {
    Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status().context("apt-get")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_sought_by_its_name_and_a_module_by_what_python_can_import() {
        let is_met = |what| Need { what, package: "", why: "" }.is_met();
        assert!(is_met("sh") && is_met("python3 -m json"));
        assert!(
            !is_met("no-such-program") && !is_met("python3 -m no_such_module") && !is_met("no-such-python -m json")
        );
    }
}
