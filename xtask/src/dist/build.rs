//! One build for both: the program and the library inside the wheel.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{Flavour, output};
use crate::package::{Old, Profile, make_executable, wheel, wheel_for_old_systems};
use crate::process::{cargo, scratch_folder, target_folder, watch};
use crate::test::FEATURES;
use crate::{needs, python};

/// The oldest C library that a download runs with: that of RHEL 8. Debian 11 has 2.31.
const GLIBC: &str = "2.28";

/// What the build made.
pub(super) struct Built {
    pub(super) program: PathBuf,
    /// One with the same command line that runs on this machine: with CUDA the program itself needs a driver to start.
    pub(super) here: PathBuf,
    /// None with CUDA: a wheel of that size has no place in a registry.
    pub(super) wheel: Option<PathBuf>,
}

/// Features of the program: what needs neither a C library nor a GPU, so that nobody compiles to grow beyond one machine.
pub(super) fn features(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Plain => "--features=cuemark-cli/milvus",
        Flavour::Cuda => "--features=cuemark-cli/milvus,cuemark-cli/cuda",
    }
}

pub(super) fn run(flavour: Flavour) -> Result<Built> {
    let host = host()?;
    match flavour {
        // CUDA's own libraries ask for a newer C library than zig would let us name, and its compiler for gcc.
        Flavour::Cuda => Ok(Built { program: by_itself(flavour)?, here: as_tests_build_it()?, wheel: None }),
        Flavour::Plain if host.ends_with("-linux-gnu") => for_old_systems(&host),
        Flavour::Plain => {
            let program = by_itself(flavour)?;
            Ok(Built { here: program.clone(), program, wheel: Some(wheel(Profile::Dist)?) })
        }
    }
}

/// The program of the suite, so that nothing is compiled for this alone.
fn as_tests_build_it() -> Result<PathBuf> {
    let mut build = cargo(&["build", "--workspace", "--all-targets", FEATURES]);
    // With these set everything that computes would be compiled anew, here and again by the next suite.
    for variable in ["CUDA_HOME", "CUDA_COMPUTE_CAP", "NVCC_CCBIN"] {
        build.env_remove(variable);
    }
    if !watch(&mut build)?.ok {
        bail!("the program cannot be built");
    }
    Ok(target_folder()?.join("debug").join(format!("cuemark{}", std::env::consts::EXE_SUFFIX)))
}

/// With this machine's own linker.
fn by_itself(flavour: Flavour) -> Result<PathBuf> {
    let arguments = ["build", "--profile", "dist", "--package", "cuemark-cli", features(flavour)];
    if !watch(&mut cargo(&arguments))?.ok {
        bail!("the program cannot be built");
    }
    Ok(target_folder()?.join("dist").join(format!("cuemark{}", std::env::consts::EXE_SUFFIX)))
}

/// With zig as C compiler and linker, which knows the symbols of every old C library.
///
/// maturin asks for the wheel's crate; the stand-in for cargo builds the program beside it, so that what they share is
/// compiled once.
fn for_old_systems(host: &str) -> Result<Built> {
    if !needs::meet_for_packing()? {
        bail!("the wheel is packed, and old systems are linked for, by programs that pip installs");
    }
    let python = python::interpreter(&[python::MATURIN, python::ZIG, python::ZIGBUILD])?;
    let cargo = scratch_folder("dist")?.join("cargo-with-zig");
    std::fs::write(&cargo, stand_in(host))?;
    make_executable(&cargo)?;
    let old = Old {
        cargo,
        target: host.to_owned(),
        compatibility: format!("manylinux_{}", GLIBC.replace('.', "_")),
        path: python::search_path(&python)?,
    };
    let wheel = wheel_for_old_systems(&old)?;
    let program = target_folder()?.join(host).join("dist/cuemark");
    Ok(Built { here: program.clone(), program, wheel: Some(wheel) })
}

/// A cargo that builds both with zig where maturin asks for one.
fn stand_in(host: &str) -> String {
    format!(
        "#!/bin/sh\n[ \"$1\" = rustc ] || exec cargo \"$@\"\n\
         unset PYO3_CONFIG_FILE PYO3_ENVIRONMENT_SIGNATURE PYO3_PYTHON\n\
         exec cargo-zigbuild zigbuild --profile dist --package cuemark-cli --package cuemark-py \
         --target {host}.{GLIBC} --message-format json-render-diagnostics\n"
    )
}

/// The triple that the compiler builds for here.
pub(super) fn host() -> Result<String> {
    let told = output(Command::new("rustc").arg("-vV"))?;
    let told = String::from_utf8_lossy(&told);
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_builds_both_for_the_oldest_system() {
        let script = stand_in("x86_64-unknown-linux-gnu");
        assert!(script.contains("--package cuemark-cli --package cuemark-py --target x86_64-unknown-linux-gnu.2.28 "));
        assert!(script.lines().nth(1).unwrap().ends_with("exec cargo \"$@\""), "{script}");
    }
}
