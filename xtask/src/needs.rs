//! Programs that tests call and that a bare machine lacks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

/// One program and the Debian package that brings it.
struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

/// Everything the tests call beside cargo. Add a line when a test starts to need a program, and not before.
const NEEDS: &[Need] = &[
    Need {
        program: "chromedriver",
        package: "chromium-driver",
        why: "drives the browser that opens reports and the search page",
    },
    Need { program: "chromium", package: "chromium", why: "the browser" },
    Need { program: "ffmpeg", package: "ffmpeg", why: "writes and decodes the world's videos" },
    Need { program: "python3", package: "python3-venv", why: "runs the tests of the Python package" },
    Need { program: "tidy", package: "tidy", why: "validates the page of a report" },
];

/// Installs what is missing when it may, and says what to install when it may not.
///
/// Answers whether everything is there now.
pub(crate) fn meet() -> Result<bool> {
    let missing = || NEEDS.iter().filter(|need| find_program(need.program).is_none());
    if missing().next().is_none() {
        return Ok(true);
    }
    for need in missing() {
        println!("`{}` is not installed ({})", need.program, need.why);
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
