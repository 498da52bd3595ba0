//! The `cuemark` command: parses, calls the library, prints. No logic of its own.

mod cell_process;
mod commands;
mod failure;
mod guide;
mod input;
mod output;
mod progress;
mod stop;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::Command;

/// Prediction files become millions of small lists on several threads; the system's allocator spends as long on them
/// as the reading itself (`results/` has the figures).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if commands::asks_for_metrics(&words) {
        return commands::list_metrics(&words).print();
    }
    let program = guide::guided(Cli::command());
    let cli = match program.clone().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
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
