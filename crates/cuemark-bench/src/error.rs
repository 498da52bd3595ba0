//! What can go wrong while a benchmark is put together.

/// The result of a benchmark step.
pub type Result<T, E = BenchError> = std::result::Result<T, E>;

/// What is wrong and where.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A table of published figures is not a CSV file with the expected columns.
    #[error("published/{paper}.csv: {source}")]
    Table {
        /// The paper's key.
        paper: &'static str,
        /// What the CSV reader says, with the line.
        source: csv::Error,
    },
    /// A published value does not fit its unit.
    #[error("published/{paper}.csv:{line}: `value`: `{value}` is not a number, but its unit is {unit:?}")]
    Value {
        /// The paper's key.
        paper: &'static str,
        /// Line in the file, from 1.
        line: u64,
        /// What stands there.
        value: String,
        /// The unit beside it.
        unit: crate::Unit,
    },
}
