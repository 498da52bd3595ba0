//! The one entry point for chores: `cargo xtask test`, `bench NAME`, `verify NAME`, `dist`, `site`, `stubs`, `leaderboard`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // A chore talks to the terminal and to nothing else.

mod axe;
mod bench;
mod bias_study;
mod client;
mod dist;
mod export;
mod kills;
mod links;
mod machine;
mod needs;
mod package;
mod plots;
mod process;
#[cfg(test)]
mod promises;
mod python;
mod registry;
mod rules;
mod site;
mod soak;
mod tally;
mod targets;
mod test;
mod tracks;
mod verify;
mod weights;
#[cfg(test)]
mod workflows;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::run(),
        ["bench", name, options @ ..] => bench::run(name, &bench::Options::parse(options)?),
        ["rules"] => Ok(ExitCode::from(u8::from(!rules::check()?))),
        ["build"] => chore(&["build", "--workspace", "--all-targets"]),
        ["advisories"] => chore(&["deny", "check", "advisories"]),
        ["dist", options @ ..] => dist::run(options),
        ["try", options @ ..] => dist::run_try(options),
        ["registry", options @ ..] => registry::run(options),
        ["site", options @ ..] => site::run(options),
        ["targets", targets @ ..] => targets::run(targets),
        ["package"] => test::package_alone(),
        ["stubs"] => package::write_stubs(),
        ["verify", name, options @ ..] => verify::run(name, options),
        ["leaderboard"] => leaderboard(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{}", help());
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("no such chore: `{}`; `cargo xtask help` lists them", words.join(" ")),
    }
}

/// The table is made where the layout of results is known; this only says who makes it.
fn leaderboard() -> Result<ExitCode> {
    // Built as the tests build it, so that nothing is compiled twice.
    let build = ["build", "--workspace", "--example", "leaderboard", test::FEATURES];
    if chore(&build)? != ExitCode::SUCCESS {
        return Ok(ExitCode::FAILURE);
    }
    let program = process::target_folder()?.join("debug/examples/leaderboard");
    let made = process::watch(&mut std::process::Command::new(program))?;
    Ok(ExitCode::from(u8::from(!made.ok)))
}

/// A command of cargo, watched.
fn chore(arguments: &[&str]) -> Result<ExitCode> {
    let done = process::watch(&mut process::cargo(arguments))?;
    Ok(ExitCode::from(u8::from(!done.ok)))
}

fn help() -> String {
    let mut text = String::from("cargo xtask test\n    everything that must hold before a change lands\n");
    text += "cargo xtask leaderboard\n    lay the table of results/runs/runs-*.json into results/world.md and write docs/findings.md\n";
    text += "cargo xtask build\n    compile everything, for systems on which the suite does not run\n";
    text += "cargo xtask rules\n    hold licences, sources and the table of crates to deny.toml and ARCHITECTURE.md\n";
    text += "cargo xtask advisories\n    look dependencies up in the database of advisories (cargo-deny, network)\n";
    text += "cargo xtask dist [--check] [--cuda]\n    the archive and the wheel that people download, from one build; tried in bare systems\n";
    text += "cargo xtask try FILE… [--peers]\n    try an archive or a wheel in bare Debian systems; beside other evaluators\n";
    text += "cargo xtask registry [--check]\n    pack the crates that are for others as a registry wants them; compile them from what was packed\n";
    text += "cargo xtask targets [TARGET…]\n    check the program for aarch64 Linux, Windows and macOS, with zig as C compiler\n";
    text += "cargo xtask site [--write]\n    the site, from docs/, with its links checked (mdBook); write the pages anew that are made from code\n";
    for bench in bench::BENCHES {
        text += &format!("cargo xtask bench {} [--repeat N] [--record]\n    {}\n", bench.name, bench.about);
    }
    for check in verify::CHECKS {
        text += &format!("cargo xtask verify {}\n    {}\n", check.usage, check.about);
    }
    text += "cargo xtask package\n    the part of `cargo xtask test` that is about the Python package, after a build of everything\n";
    text +=
        "cargo xtask stubs\n    write the type stubs of the Python package anew, after a change of its signatures\n";
    text
}

/// That every option is one that `usage` names: a chore of an hour must not begin with one that it does not understand.
fn only_known(options: &[&str], usage: &str) -> Result<()> {
    let named = usage.split(['[', ']', ' ', '|']);
    match options.iter().find(|word| word.starts_with('-') && !named.clone().any(|name| name == **word)) {
        Some(unknown) => bail!("no option `{unknown}`; usage: {usage}"),
        None => Ok(()),
    }
}

/// The value of `--name VALUE` in `options`, parsed.
fn option<T: std::str::FromStr>(options: &[&str], name: &str) -> Result<Option<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let Some(place) = options.iter().position(|word| *word == name) else { return Ok(None) };
    let value = options.get(place + 1).with_context(|| format!("`{name}` wants a value"))?;
    value.parse().map(Some).with_context(|| format!("`{name} {value}`"))
}

#[cfg(test)]
mod tests {
    use super::only_known;

    #[test]
    fn an_option_that_is_not_in_the_usage_is_refused() {
        let usage = "fuzz [--minutes N [--cores N] | --minimise | --seconds N]";
        for known in [&[][..], &["--minutes", "3"], &["--cores", "2", "--minutes", "1"], &["--minimise"]] {
            only_known(known, usage).unwrap();
        }
        for unknown in ["--help", "-h", "--minute", "--minutes=3"] {
            let told = only_known(&[unknown], usage).unwrap_err().to_string();
            assert!(told.contains(unknown) && told.contains("usage: fuzz"), "{told}");
        }
    }
}
