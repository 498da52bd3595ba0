//! The `cuemark` command: what the wheel installs beside `import cuemark`.

use std::ffi::OsString;

use cuemark_cli::Invocation;
use pyo3::prelude::*;

/// Does what was typed behind `cuemark`, and returns the exit code.
///
/// ``again`` is what starts this program again, for the processes that fill the cells of a study; ``python -m
/// cuemark`` and the command ``cuemark`` call this.
#[pyfunction]
#[pyo3(signature = (words: "list[str]", again: "list[str]") -> "int")]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| cuemark_cli::run(&Invocation { again, words }))
}
