//! The `cuemark` command: parses, calls the library, prints. No logic of its own.
//!
//! A library with one function, so that the program (`main.rs`) and the wheel (`python -m cuemark`) are the same command.

mod cell_process;
mod commands;
mod failure;
mod guide;
mod input;
mod invocation;
mod output;
mod progress;
mod stop;

use std::ffi::{OsStr, OsString};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::Command;
pub use crate::invocation::Invocation;

/// Finds the moment that a sentence describes, and tells how far to trust the answer.
#[derive(Parser)]
#[command(name = "cuemark", version, max_term_width = 110)]
struct Cli {
    /// Leave out notes and progress; results and errors stay.
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// Does what was typed, and answers with the exit code: 0, 1 when the input has problems, 2 when the command line has.
pub fn run(invocation: &Invocation) -> u8 {
    invocation::remember(invocation);
    let words: Vec<String> = invocation.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if commands::asks_for_metrics(&words) {
        return commands::list_metrics(&words).print();
    }
    let program = guide::guided(Cli::command());
    let typed = std::iter::once(OsStr::new("cuemark")).chain(invocation.words.iter().map(OsString::as_os_str));
    let cli = match program.clone().try_get_matches_from(typed).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error.format(&mut program.clone())),
    };
    if cli.quiet {
        output::be_quiet();
    }
    // A budget that nobody can read must not silently become the default.
    if let Err(error) = cuemark_formats::Budget::from_environment() {
        return failure::report(&error.into());
    }
    match cli.command.run(program) {
        Ok(outcome) => outcome.print(),
        Err(error) => failure::report(&error),
    }
}
