//! The `cuemark` command: parses, calls the library, prints. No logic of its own.

mod commands;
mod failure;
mod input;
mod matrix_run;
mod output;
mod progress;
mod similarity;
mod stop;

use clap::Parser;

use crate::commands::Command;

/// Prediction files become millions of small lists on several threads; the system's allocator spends as long on them
/// as the reading itself (`results/` has the figures).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Finds the moment that a sentence describes, and tells how far to trust the answer.
#[derive(Parser)]
#[command(name = "cuemark", version, max_term_width = 110, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    // A budget that nobody can read must not silently become the default.
    if let Err(error) = cuemark_formats::Budget::from_environment() {
        return failure::report(&error.into());
    }
    match cli.command.run() {
        Ok(outcome) => outcome.print(),
        Err(error) => failure::report(&error),
    }
}
