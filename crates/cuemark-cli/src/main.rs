//! The `cuemark` program.

use std::ffi::{c_int, c_long};
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

/// Networks that look at films give tens of megabytes back after every layer and ask for as many again. What went back to the system by
/// then comes as fresh pages, which the kernel clears; so it goes back when nobody has wanted it for ten seconds.
#[allow(unsafe_code)]
fn keep_memory_for_a_while() {
    const PURGE_DELAY: c_int = 15; // `mi_option_purge_delay`, in milliseconds
    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: mimalloc's own function, of these types; it checks the number of the option.
        unsafe { mi_option_set(PURGE_DELAY, 10_000) };
    }
}

fn main() -> ExitCode {
    keep_candle_to_one_thread();
    keep_memory_for_a_while();
    ExitCode::from(cuemark_cli::run(&Invocation::of_this_process()))
}
