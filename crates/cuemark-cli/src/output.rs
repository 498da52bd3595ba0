//! Results to standard output, everything else to standard error; a closed pipe is not an error.

use std::io::Write;
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use cuemark_core::RowCounts;
pub(crate) use cuemark_core::text::{percent, thousands};
use serde::Serialize;

/// What a command has to say, and whether its input had problems.
pub(crate) struct Outcome {
    text: String,
    code: u8,
}

impl Outcome {
    /// All is well.
    pub(crate) fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    /// The same, with the exit code that says the input has problems.
    #[must_use]
    pub(crate) fn with_problems(mut self) -> Self {
        self.code = crate::failure::PROBLEMS;
        self
    }

    /// Writes the text to standard output.
    pub(crate) fn print(self) -> ExitCode {
        let mut out = std::io::stdout().lock();
        let text = self.text.trim_end_matches('\n');
        if !text.is_empty() {
            // Whoever closed the pipe has read enough.
            let _ = writeln!(out, "{text}");
        }
        ExitCode::from(self.code)
    }
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Print {
    /// Print JSON with fractions instead of text with percent.
    #[arg(long)]
    json: bool,
}

impl Print {
    /// `value` as JSON for scripts, or `text` for people.
    pub(crate) fn result(self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<Outcome> {
        Ok(Outcome::ok(if self.json { format!("{:#}", serde_json::to_value(value)?) } else { text() }))
    }
}

/// One line to standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A table of numbers without rules: the first column left, the others right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(header, rows, CellAlignment::Right)
}

/// A table of words without rules, every column left.
pub(crate) fn text_table(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(header, rows, CellAlignment::Left)
}

fn aligned(header: &[&str], rows: &[Vec<String>], others: CellAlignment) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(others);
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What was wrong with rows, in one line; `None` when nothing was.
pub(crate) fn faults(rows: &RowCounts) -> Option<String> {
    let met: Vec<String> = rows.iter().map(|(fault, n)| format!("{} {fault}", thousands(n))).collect();
    let mut line = (!rows.is_clean()).then(|| met.join(", "))?;
    for (n, done) in [(rows.changed, "changed"), (rows.dropped, "left out")] {
        if n > 0 {
            line = format!("{line}; {} {done}", thousands(n));
        }
    }
    Some(line)
}
