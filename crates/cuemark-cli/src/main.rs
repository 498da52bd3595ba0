//! The `cuemark` program.

use std::process::ExitCode;

use cuemark_cli::Invocation;

/// Prediction files become millions of small lists on several threads; the system's allocator spends as long on them
/// as the reading itself (`results/` has the figures).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(cuemark_cli::run(&Invocation::of_this_process()))
}
