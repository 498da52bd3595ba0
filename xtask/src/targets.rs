//! `cargo xtask targets`: whether the program, the server and these chores compile for systems that the suite does not run on.
//!
//! zig stands in for the C compilers of those systems. Windows' own C compiler cannot be had that way, so that Windows is
//! checked with GNU's; the Python module needs an interpreter of the system, and is left to its own machine.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::process::{watch, workspace};
use crate::python;

const TARGETS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

pub(crate) fn run() -> Result<ExitCode> {
    let python = python::interpreter(&[python::ZIG, python::ZIGBUILD])?;
    let path = python::search_path(&python)?;
    let mut failed = Vec::new();
    for target in TARGETS {
        println!("\n== {target}");
        let added = watch(Command::new("rustup").args(["target", "add", target]))?.ok;
        let mut check = Command::new(python.with_file_name("cargo-zigbuild"));
        check.args(["check", "--target", target, "--package", "cuemark-cli", "--package", "xtask"]);
        check.args(["--features", "cuemark-cli/milvus"]).current_dir(workspace()).env("PATH", &path);
        if !added || !watch(&mut check)?.ok {
            failed.push(*target);
        }
    }
    if !failed.is_empty() {
        println!("does not compile for {}", failed.join(", "));
    }
    Ok(ExitCode::from(u8::from(!failed.is_empty())))
}
