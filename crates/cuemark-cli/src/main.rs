//! The `cuemark` program.

use std::process::ExitCode;

use cuemark_cli::Invocation;

/// Prediction files become millions of small lists on several threads; the system's allocator spends as long on them
/// as the reading itself (`results/` has the figures).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// candle shares its larger elementwise operations between threads of its own, which go on spinning for a millisecond after each:
/// beside ours they take the cores from them, and parts of a batch that are read on several threads wait for each other there.
#[allow(unsafe_code)]
fn keep_candle_to_one_thread() {
    const THREADS: &str = "CANDLE_NUM_THREADS";
    if std::env::var_os(THREADS).is_none() {
        // SAFETY: called first in the program, when no other thread runs that could read the environment.
        unsafe { std::env::set_var(THREADS, "1") };
    }
}

fn main() -> ExitCode {
    keep_candle_to_one_thread();
    ExitCode::from(cuemark_cli::run(&Invocation::of_this_process()))
}
