//! The native half of `import cuemark`: arguments in, calls into the library, results out. No logic of its own.
//!
//! One topic, one file. `arguments` turns whatever Python hands over (paths, dicts, arrays, frames) into our types,
//! `watch` runs long work without the interpreter's lock, `failure` gives errors the text and hint of the command
//! line. The types in `signature = (…)` end up in `_native.pyi`, which `cargo xtask stubs` writes.

// Views of arrays are references already, and one code reads arrays of 32 and of 64 bits.
#![allow(clippy::needless_pass_by_value, clippy::useless_conversion)]

mod arguments;
mod baselines;
mod command;
mod comparison;
mod dataset;
mod evaluation;
mod failure;
mod index;
mod kde;
mod predictions;
mod rank;
mod report;
mod spans;
mod split;
mod splits;
mod tables;
mod watch;

/// Lists of predictions are millions of small allocations on several threads; the system's allocator spends as long on
/// them as the scoring itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `import cuemark` is made of; use it through the `cuemark` package.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::baselines::baseline;
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::comparison::{Comparison, compare};
    #[pymodule_export]
    use crate::dataset::{Dataset, load};
    #[pymodule_export]
    use crate::evaluation::{Evaluation, evaluate};
    #[pymodule_export]
    use crate::index::{Answer, AnswerIterator, Answers, Index};
    #[pymodule_export]
    use crate::kde::{Kde, kde};
    #[pymodule_export]
    use crate::predictions::{Predictions, read_predictions};
    #[pymodule_export]
    use crate::rank::{Consensus, agreement, consensus};
    #[pymodule_export]
    use crate::report::{dataset_names, metric_names, preset_names, report};
    #[pymodule_export]
    use crate::spans::{iou, nms};
    #[pymodule_export]
    use crate::split::{Moment, Record, Records, Split, read_truth};
    #[pymodule_export]
    use crate::splits::{MadeSplits, audit, cd, centre, standard};
}
