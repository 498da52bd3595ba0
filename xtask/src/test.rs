//! `cargo xtask test`: everything that must hold before a change lands, counted.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::process::{cargo, scratch_folder, watch};
use crate::tally::Tally;
use crate::{axe, needs, package, python, rules, weights};

/// One command of the suite.
struct Step {
    name: &'static str,
    /// Arguments of cargo.
    cargo: &'static [&'static str],
    counts: Counts,
}

/// What a step adds to the closing line.
enum Counts {
    /// One test: it ended well or it did not.
    Itself,
    /// The tests that its runners counted.
    Runners,
}

/// The C libraries behind published feature layouts, and the engine for a database server: off for users who do not ask, on
/// for the tests.
pub(crate) const FEATURES: &str = "--features=cuemark-cli/lmdb,cuemark-cli/milvus";

/// The step before which weights are pulled: the program that pulls them has been built by then.
const TESTS: &str = "tests";

/// The step that makes the library's documentation, in which a broken link is an error.
const DOCS: &str = "documentation";

/// In order; a later step runs even when an earlier one failed.
const STEPS: &[Step] = &[
    Step { name: "format", cargo: &["fmt", "--all", "--", "--check"], counts: Counts::Itself },
    Step {
        name: "clippy",
        cargo: &["clippy", "--workspace", FEATURES, "--all-targets", "--", "-D", "warnings"],
        counts: Counts::Itself,
    },
    // With everything that tests need, or the libraries would be compiled a second time for them with other features.
    Step { name: "build", cargo: &["build", "--workspace", "--all-targets", FEATURES], counts: Counts::Itself },
    Step {
        name: TESTS,
        cargo: &["nextest", "run", "--workspace", FEATURES, "--no-fail-fast"],
        counts: Counts::Runners,
    },
    Step {
        name: "doc tests",
        cargo: &["test", "--workspace", FEATURES, "--doc", "--no-fail-fast"],
        counts: Counts::Runners,
    },
    Step { name: DOCS, cargo: &["doc", "--workspace", FEATURES, "--no-deps"], counts: Counts::Itself },
];

/// What stands in for nextest where it is not installed.
const WITHOUT_NEXTEST: &[&str] = &["test", "--workspace", FEATURES, "--lib", "--bins", "--tests", "--no-fail-fast"];

/// Runs the suite; ends with `N passed, N failed` and exit code 1 when anything failed.
pub(crate) fn run() -> Result<ExitCode> {
    let skipped = scratch_folder("test")?.join("skipped");
    std::fs::write(&skipped, "")?;
    let mut total = Tally::default();
    let mut failed = Vec::new();
    heading("system packages");
    let needs = Tally::one(needs::meet()?);
    note("system packages", needs, &mut total, &mut failed);
    heading("rules");
    note("rules", Tally::one(rules::check()?), &mut total, &mut failed);
    for step in STEPS {
        if step.name == TESTS {
            heading("weights");
            weights::pull()?;
            heading("axe-core");
            axe::fetch()?;
            heading("servers");
            database();
        }
        heading(step.name);
        let tally = run_step(step, &skipped)?;
        note(step.name, tally, &mut total, &mut failed);
    }
    check_package(&skipped, total, failed)
}

/// `cargo xtask package`: the last steps of the suite by themselves.
pub(crate) fn package_alone() -> Result<ExitCode> {
    let skipped = scratch_folder("test")?.join("skipped");
    std::fs::write(&skipped, "")?;
    check_package(&skipped, Tally::default(), Vec::new())
}

/// Checks the Python package, and closes with what all steps came to.
fn check_package(skipped: &Path, mut total: Tally, mut failed: Vec<&'static str>) -> Result<ExitCode> {
    for (name, tally) in package::check(skipped, heading)? {
        note(name, tally, &mut total, &mut failed);
    }
    println!();
    list_skipped(skipped)?;
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(ExitCode::from(u8::from(total.failed > 0)))
}

/// Installs the database server that a test starts.
///
/// A machine without a network can still run everything else: the test notes itself as skipped.
fn database() {
    if let Err(error) = python::interpreter(&[python::SETUPTOOLS, python::MILVUS]) {
        println!("SKIPPED: the server of the package `milvus` cannot be installed here: {error:#}");
    }
}

fn heading(step: &str) {
    println!("\n== {step}");
}

fn note(step: &'static str, tally: Tally, total: &mut Tally, failed: &mut Vec<&'static str>) {
    *total += tally;
    if tally.failed > 0 {
        failed.push(step);
    }
}

fn run_step(step: &Step, skipped: &Path) -> Result<Tally> {
    let arguments = match step.cargo {
        ["nextest", ..] if needs::find_program("cargo-nextest").is_none() => WITHOUT_NEXTEST,
        arguments => arguments,
    };
    let mut command = cargo(arguments);
    command.env("CUEMARK_SKIPPED_LOG", skipped).env("CUEMARK_CACHE", weights::cache()?);
    if step.name == DOCS {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    if std::env::var_os("CI").is_some() {
        // Nothing is built twice there, so what incremental builds write would only cost time and disk.
        command.env("CARGO_INCREMENTAL", "0");
    }
    let watched = watch(&mut command)?;
    Ok(match step.counts {
        Counts::Itself => Tally::one(watched.ok),
        Counts::Runners => Tally::of_runners(&watched.output, watched.ok),
    })
}

/// Names the tests that checked nothing because the published files are not beside the checkout.
fn list_skipped(log: &Path) -> Result<()> {
    let text = std::fs::read_to_string(log)?;
    let mut names: Vec<&str> = text.lines().collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        println!("SKIPPED (no shared files): {name}");
    }
    if !names.is_empty() {
        println!("skipped for want of shared files: {}; CUEMARK_SHARED says where they lie", names.len());
    }
    Ok(())
}
