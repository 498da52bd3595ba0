//! `cargo xtask targets [TARGET…]`: whether the program, the server and these chores compile for systems that the suite does not run on.
//!
//! zig stands in for the C compilers of those systems. Windows' own C compiler cannot be had that way, so that Windows is
//! checked with GNU's; the Python module needs an interpreter of the system, and is left to its own machine.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::process::{keep_our_package_from, watch, workspace};
use crate::python;

const TARGETS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

pub(crate) fn run(named: &[&str]) -> Result<ExitCode> {
    if let Some(unknown) = named.iter().find(|target| !TARGETS.contains(target)) {
        bail!("`{unknown}` is none of {}", TARGETS.join(", "));
    }
    let targets = if named.is_empty() { TARGETS } else { named };
    let python = python::interpreter(&[python::ZIG, python::ZIGBUILD])?;
    let path = python::search_path(&python)?;
    let (mut failed, mut absent) = (Vec::new(), Vec::new());
    for target in targets {
        println!("\n== {target}");
        if !watch(Command::new("rustup").args(["target", "add", target]).current_dir(workspace()))?.ok {
            absent.push(*target);
            continue;
        }
        let mut check = Command::new(python.with_file_name("cargo-zigbuild"));
        check.args(["check", "--target", target, "--package", "cuemark-cli", "--package", "xtask"]);
        check.args(["--features", "cuemark-cli/milvus"]).current_dir(workspace()).env("PATH", &path);
        keep_our_package_from(&mut check);
        // zig takes the date that mimalloc prints for a mistake where it builds for Windows.
        check.env("CFLAGS", "-Wno-date-time");
        if !watch(&mut check)?.ok {
            failed.push(*target);
        }
    }
    for (what, targets) in [("does not compile for", &failed), ("no standard library to be had for", &absent)] {
        if !targets.is_empty() {
            println!("{what} {}", targets.join(", "));
        }
    }
    Ok(ExitCode::from(u8::from(!failed.is_empty() || !absent.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_nobody_checks_for_is_refused_before_anything_is_fetched() {
        assert!(run(&["riscv64gc-unknown-linux-gnu"]).unwrap_err().to_string().contains("aarch64-apple-darwin"));
    }
}
