//! The Python package: its wheel, its type stubs, its tests in a fresh environment.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::process::{keep_our_package_from, scratch_folder, target_folder, watch, workspace};
use crate::python;
use crate::tally::Tally;
use crate::test::FEATURES;

/// What the tests of the package import beside it.
const TESTED_WITH: &[&str] = &["mypy", "numpy", "pandas", "pytest"];

/// Names that the signatures in the Rust code use and that stubs have to import.
const IMPORTS: &str = "\
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsFloat, SupportsIndex, final

import numpy
from numpy.typing import NDArray

from ._types import (
    BadRows,
    DataFrame,
    DurationsLike,
    FloatArray,
    IouForm,
    PathLike,
    PredictionsLike,
    ProgressLike,
    RatingsLike,
    TruthLike,
    VideoIndexLike,
)
";

/// How a wheel's crate is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// From what `cargo build` of the whole workspace has made already, for tests.
    Workspace,
    /// By itself and optimised, for figures.
    Release,
    /// As people download it, for systems like this one.
    Dist,
}

/// How to build a wheel that runs on systems older than this one.
pub(crate) struct Old {
    /// What stands in for cargo.
    pub(crate) cargo: PathBuf,
    /// The triple that it builds for.
    pub(crate) target: String,
    /// What the wheel promises, such as `manylinux_2_28`; maturin holds the library to it.
    pub(crate) compatibility: String,
    /// Where programs are looked for.
    pub(crate) path: OsString,
}

/// Everything about the package that must hold, as steps of `cargo xtask test`.
pub(crate) fn check(skipped: &Path, heading: fn(&str)) -> Result<Vec<(&'static str, Tally)>> {
    heading("wheel");
    let made = wheel(Profile::Workspace).and_then(|wheel| Environment::fresh(&wheel, TESTED_WITH));
    let environment = match made {
        Ok(environment) => environment,
        Err(error) => {
            println!("{error:#}");
            return Ok(vec![("wheel", Tally::one(false))]);
        }
    };
    let mut steps = vec![("wheel", Tally::one(true))];

    heading("type stubs");
    let fresh = stubs().map(|stubs| stubs == fs::read_to_string(stub_file()).unwrap_or_default());
    if !matches!(fresh, Ok(true)) {
        println!("`{}` is not what the code says: cargo xtask stubs", stub_file().display());
    }
    steps.push(("type stubs", Tally::one(fresh.unwrap_or(false))));

    heading("mypy");
    let folder = package_folder();
    let mut mypy = environment.python();
    mypy.args(["-m", "mypy", "--strict"]).arg(folder.join("examples")).arg(folder.join("python/cuemark"));
    steps.push(("mypy", Tally::one(watch(&mut mypy)?.ok)));

    heading("pytest");
    let mut pytest = environment.python();
    pytest.args(["-m", "pytest"]).arg(folder.join("tests"));
    pytest.env("CUEMARK_SKIPPED_LOG", skipped).env("CUEMARK_CLI", target_folder()?.join("debug/cuemark"));
    let watched = watch(&mut pytest)?;
    steps.push(("pytest", Tally::of_pytest(&watched.output, watched.ok)));
    Ok(steps)
}

/// `cargo xtask stubs`: writes the stubs that the code asks for.
pub(crate) fn write_stubs() -> Result<ExitCode> {
    fs::write(stub_file(), stubs()?)?;
    println!("wrote {}", stub_file().display());
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask verify torch`
pub(crate) fn verify_torch() -> Result<bool> {
    let environment = Environment::fresh(&wheel(Profile::Workspace)?, &["torch"])?;
    Ok(watch(environment.python().arg(package_folder().join("tests/with_torch.py")))?.ok)
}

/// Notebooks with their outputs.
const NOTEBOOKS: &[&str] = &["docs/trust-card.ipynb", "examples/score.ipynb", "examples/search.ipynb"];

/// `cargo xtask verify notebook`: runs copies, so that the outputs in the repository stay those that were looked at.
pub(crate) fn verify_notebook() -> Result<bool> {
    let environment = Environment::fresh(&wheel(Profile::Workspace)?, &["ipykernel", "matplotlib", "nbconvert"])?;
    let folder = scratch_folder("python")?.join("notebook");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut held = true;
    for path in NOTEBOOKS.iter().map(Path::new) {
        let notebook = folder.join(path.file_name().context("a notebook has no name")?);
        fs::copy(workspace().join(path), &notebook)?;
        let mut run = environment.python();
        run.args(["-m", "nbconvert", "--to", "notebook", "--execute", "--inplace"]).arg(&notebook);
        held &= watch(&mut run)?.ok;
    }
    println!("the notebooks and their picture lie in {}", folder.display());
    Ok(held && folder.join("trust-card/trust-card.png").is_file())
}

fn package_folder() -> PathBuf {
    workspace().join("crates/cuemark-py")
}

fn stub_file() -> PathBuf {
    package_folder().join("python/cuemark/_native.pyi")
}

/// A virtual environment with the package in it and nothing else that was not asked for.
pub(crate) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// A new one; what was there before is removed.
    pub(crate) fn fresh(wheel: &Path, packages: &[&str]) -> Result<Self> {
        let folder = scratch_folder("python")?.join("environment");
        python::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let environment = Self { folder };
        let mut pip = environment.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).arg(wheel).args(packages);
        python::run(&mut pip)?;
        Ok(environment)
    }

    /// Its interpreter, at the root of the workspace.
    pub(crate) fn python(&self) -> Command {
        let mut command = Command::new(self.folder.join(python::PYTHON));
        command.current_dir(workspace());
        command
    }
}

/// Packs the wheel and tells where it lies.
pub(crate) fn wheel(profile: Profile) -> Result<PathBuf> {
    let mut maturin = maturin(profile, "build")?;
    if profile == Profile::Workspace {
        // There the library links the C libraries that the program's features bring; a wheel that stays here needs no copies.
        maturin.args(["--auditwheel", "skip"]);
    }
    packed_by(&mut maturin)
}

/// Packs the wheel that people download, and tells where it lies.
pub(crate) fn wheel_for_old_systems(old: &Old) -> Result<PathBuf> {
    let mut maturin = maturin(Profile::Dist, "build")?;
    maturin.args(["--target", &old.target, "--compatibility", &old.compatibility]);
    packed_by(maturin.env("CARGO", &old.cargo).env("PATH", &old.path))
}

fn packed_by(maturin: &mut Command) -> Result<PathBuf> {
    let wheels = scratch_folder("python")?.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    if !watch(maturin.arg("--out").arg(&wheels))?.ok {
        bail!("the wheel does not build");
    }
    let made = fs::read_dir(&wheels)?.filter_map(|entry| Some(entry.ok()?.path()));
    made.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl")).context("maturin made no wheel")
}

/// The stubs that the signatures in the code ask for: what maturin finds in the library, and the imports it lacks.
fn stubs() -> Result<String> {
    let folder = scratch_folder("python")?.join("stubs");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    if !watch(maturin(Profile::Workspace, "generate-stubs")?.arg("--out").arg(&folder))?.ok {
        bail!("maturin gives no stubs");
    }
    let found = ["_native.pyi", "cuemark/_native.pyi", "_native/__init__.pyi", "__init__.pyi"];
    let file = found.into_iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let found = fs::read_to_string(file.context("maturin wrote no `_native.pyi`")?)?;
    Ok(complete(&found))
}

/// What maturin writes, with the names that quoted annotations use imported and the quotes taken off.
fn complete(found: &str) -> String {
    let (imports, rest): (Vec<&str>, Vec<&str>) =
        found.lines().partition(|line| line.starts_with("import ") || line.starts_with("from "));
    // What these have is among ours; what else the library names is kept.
    let ours = ["from _typeshed ", "from collections.abc ", "from typing "];
    let kept = imports.into_iter().filter(|line| !ours.iter().any(|module| line.starts_with(module)));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    // The types of ours that the library cannot name are arrays of doubles and walks over names.
    let named = |line: String| {
        line.replace("Incomplete", "NDArray[numpy.float64]").replace("-> Iterator:", "-> Iterator[str]:")
    };
    let rest = rest.into_iter().map(|line| named(without_quotes(line)));
    let rest: Vec<String> = rest.collect();
    let head = "# Written by `cargo xtask stubs` from the signatures in crates/cuemark-py/src; not to be edited.\n";
    format!("{head}{IMPORTS}{kept}\n{}\n", rest.join("\n").trim())
}

/// `name: "list[int]" = None` as `name: list[int] = None`, on lines that declare something.
fn without_quotes(line: &str) -> String {
    if !line.trim_start().starts_with("def ") {
        return line.to_owned();
    }
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, from)) = [": \"", "-> \""]
        .iter()
        .filter_map(|open| rest.find(open).map(|at| at + open.len()))
        .min()
        .and_then(|at| rest.split_at_checked(at))
    {
        let Some((inside, after)) = from.split_once('"') else { break };
        bare.push_str(before.strip_suffix('"').unwrap_or(before));
        bare.push_str(inside);
        rest = after;
    }
    bare + rest
}

/// maturin at the root of the workspace.
fn maturin(profile: Profile, verb: &str) -> Result<Command> {
    let python = python::interpreter(&[python::MATURIN])?;
    let mut command = Command::new(&python);
    command.args(["-m", "maturin", verb, "--interpreter", "python3"]).current_dir(workspace());
    keep_our_package_from(&mut command);
    match profile {
        Profile::Workspace => command.args(["--profile", "dev"]).env("CARGO", cargo_that_built_already()?),
        Profile::Release => command.arg("--release"),
        Profile::Dist => command.args(["--profile", "dist"]),
    };
    if std::env::var_os("CI").is_some() {
        // As the other steps of the suite do, so that nothing is built anew.
        command.env("CARGO_INCREMENTAL", "0");
    }
    Ok(command)
}

/// A stand-in for cargo that builds the whole workspace where maturin asks for one crate.
///
/// By itself the crate would be built with other features of the libraries that it shares with the program, so that most
/// of them would be compiled a second time. In the workspace's own build everything is there already; of
/// what it tells, the test programs are left out.
fn cargo_that_built_already() -> Result<PathBuf> {
    let path = scratch_folder("python")?.join("cargo");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = rustc ] || exec cargo \"$@\"\n\
         unset PYO3_CONFIG_FILE PYO3_ENVIRONMENT_SIGNATURE PYO3_PYTHON\n\
         cargo build --workspace --all-targets {FEATURES} --message-format json-render-diagnostics |\
         grep -v '\"test\":true'\n"
    );
    fs::write(&path, script)?;
    make_executable(&path)?;
    Ok(path)
}

/// Lets a script be run by its name.
#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) -> Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// There are no scripts of that kind here.
#[cfg(not(unix))]
pub(crate) fn make_executable(path: &Path) -> Result<()> {
    bail!("`{}` is a shell script, which this system does not run", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_lose_their_quotes_and_defaults_keep_theirs() {
        let line = "    def f(a: \"str | None\" = None, b: \"Literal['x']\" = \"x\") -> \"dict[str, Any]\": ...";
        assert_eq!(
            without_quotes(line),
            "    def f(a: str | None = None, b: Literal['x'] = \"x\") -> dict[str, Any]: ..."
        );
        assert_eq!(without_quotes("    \"\"\"says: \"this\"\"\"\""), "    \"\"\"says: \"this\"\"\"\"");
    }
}
