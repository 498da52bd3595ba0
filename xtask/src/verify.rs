//! `cargo xtask verify`: long checks, whose results are committed under `results/`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, scratch_folder, shared_folder, target_folder, watch, workspace};
use crate::test::FEATURES;
use crate::{bias_study, export, kills, needs, only_known, option, package, python, soak, tracks};

/// One long check.
pub(crate) struct Check {
    /// Name and options, as one types them.
    pub(crate) usage: &'static str,
    /// What it shows.
    pub(crate) about: &'static str,
    run: fn(&[&str]) -> Result<bool>,
}

/// Every check, in the order of `cargo xtask help`.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        usage: "peers",
        about: "hold the Python peers of `bench eval` to the golden figures of the public evaluators",
        run: peers,
    },
    Check {
        usage: "bias",
        about: "what guesses reach in worlds of known bias and on Charades-CD; written to results/",
        run: bias_study::run,
    },
    Check {
        usage: "torch",
        about: "cuemark.torch_metric on PyTorch tensors: in a loop, in every precision, in two processes",
        run: |_| package::verify_torch(),
    },
    Check {
        usage: "notebook",
        about: "run docs/trust-card.ipynb and the notebooks of examples/ from the first cell to the last",
        run: |_| package::verify_notebook(),
    },
    Check {
        usage: "export",
        about: "a 2D-TAN trained on a small world, exported and opened in PyTorch, gives our answers to 1e-5",
        run: export::run,
    },
    Check {
        usage: "faults",
        about: "fail every file operation in the life of an index and of a training run in every way, and cut the power at each",
        run: faults,
    },
    Check {
        usage: "fuzz [--minutes N [--executions N] [--cores N] [--program FILE] | --minimise | --seconds N]",
        about: "all fuzz targets: for N minutes or N executions of each, counted, guided by coverage; or with cargo-fuzz (nightly)",
        run: fuzz,
    },
    Check {
        usage: "kills [--count N] [--seed N] [--program FILE --crash FILE]",
        about: "kill -9 of writers, compaction, server jobs and training N times (2,000 unless told): nothing may be lost",
        run: kills::run,
    },
    Check {
        usage: "soak [--minutes N] [--seed N] [--behind counts|fails] [--program FILE]",
        about: "a server with writers, readers, jobs, hostile clients and kills for N minutes (30 unless told), watched",
        run: soak::run,
    },
    Check {
        usage: "tracks [--seed N] [--films N] [--program FILE] [--noise clean|DECIBELS …] [--record]",
        about: "films with known words among others, asked for by what is said and written, beside pictures alone",
        run: tracks::run,
    },
];

/// Runs the check called `name`; exit code 1 when it does not hold.
pub(crate) fn run(name: &str, options: &[&str]) -> Result<ExitCode> {
    let check = CHECKS.iter().find(|check| check.usage.split(' ').next() == Some(name));
    let check = check.with_context(|| format!("no such check: `{name}`; `cargo xtask help` lists them"))?;
    only_known(options, check.usage)?;
    let held = (check.run)(options)?;
    Ok(ExitCode::from(u8::from(!held)))
}

fn peers(_: &[&str]) -> Result<bool> {
    let shared = shared_folder();
    if !shared.join("golden").is_dir() {
        bail!("no golden cases below `{}`; set CUEMARK_SHARED", shared.display());
    }
    let python = python::interpreter(&[python::NUMPY, python::SKLEARN])?;
    Ok(watch(Command::new(python).arg(python::peer("golden.py")).arg(shared))?.ok)
}

fn faults(_: &[&str]) -> Result<bool> {
    let index = ["test", "--release", "-p", "cuemark-search", "--no-default-features", "--test", "faults"];
    let training = ["test", "--release", "-p", "cuemark-train", "--test", "faults"];
    let mut held = true;
    for tests in [&index[..], &training] {
        held &= watch(cargo(tests).env("CUEMARK_FAULTS", "all"))?.ok;
    }
    Ok(held)
}

fn fuzz(options: &[&str]) -> Result<bool> {
    if options.contains(&"--minimise") {
        return fuzz_minimise();
    }
    if let Some(minutes) = option::<f64>(options, "--minutes")? {
        return fuzz_loop(minutes, options);
    }
    let seconds: u32 = option(options, "--seconds")?.unwrap_or(60);
    if needs::find_program("cargo-fuzz").is_none() {
        bail!("cargo-fuzz is not installed: cargo install cargo-fuzz");
    }
    let mut held = true;
    for target in fuzz_targets()? {
        println!("\n== {target}");
        held &= fuzz_one(&target, seconds)?;
    }
    Ok(held)
}

/// A loop of our own over the same functions, in processes of their own: no nightly compiler.
fn fuzz_loop(minutes: f64, options: &[&str]) -> Result<bool> {
    let program = match option::<PathBuf>(options, "--program")? {
        Some(program) => std::path::absolute(program)?,
        None => build_fuzz_loop()?,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = option(options, "--cores")?.unwrap_or(cores);
    let executions: u64 = option(options, "--executions")?.unwrap_or(0);
    let mut command = Command::new(program);
    command.args(["run", &(minutes * 60.0).to_string(), &cores.to_string(), &executions.to_string()]);
    command.arg(workspace().join("fuzz/corpus")).arg(workspace().join("fixtures")).arg(scratch_folder("fuzz")?);
    Ok(watch(&mut command)?.ok)
}

/// Puts those of the inputs that earlier runs found into the corpus without which something would not be reached.
fn fuzz_minimise() -> Result<bool> {
    let corpus = workspace().join("fuzz/corpus");
    let mut command = Command::new(build_fuzz_loop()?);
    command.arg("minimise").arg(&corpus).arg(workspace().join("fixtures")).arg(scratch_folder("fuzz")?).arg(&corpus);
    Ok(watch(&mut command)?.ok)
}

/// Optimised, and with our own libraries counting their edges. Features are those of the tests, so that what is not ours is
/// compiled once.
fn build_fuzz_loop() -> Result<PathBuf> {
    let folder = target_folder()?.join("fuzzing");
    let mut build = cargo(&["build", "--workspace", FEATURES, "--bin", "fuzz-loop", "--test", "corpus"]);
    build.env("CARGO_TARGET_DIR", &folder).env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "3");
    build.env("RUSTC_WORKSPACE_WRAPPER", workspace().join("fuzz/instrumented-rustc").canonicalize()?);
    if !watch(&mut build)?.ok {
        bail!("the fuzz targets cannot be built");
    }
    Ok(folder.join("debug/fuzz-loop"))
}

/// One target per file in `fuzz/targets/`.
fn fuzz_targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(workspace().join("fuzz/targets"))? {
        let path = entry?.path();
        targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    targets.sort();
    Ok(targets)
}

fn fuzz_one(target: &str, seconds: u32) -> Result<bool> {
    // New finds go to the first folder; the stored inputs and the fixtures are only read.
    let found = scratch_folder(&format!("fuzz/{target}"))?;
    let stored = workspace().join("fuzz/corpus").join(target);
    let mut command = cargo(&["+nightly", "fuzz", "run", "--features", "libfuzzer", target]);
    // Optimising across crates would cost minutes for each target and finds nothing.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off");
    command.arg(found).arg(stored).arg(workspace().join("fixtures"));
    command.args(["--", &format!("-max_total_time={seconds}"), "-max_len=65536", "-rss_limit_mb=2048", "-timeout=10"]);
    Ok(watch(&mut command)?.ok)
}
