//! Results to standard output, everything else to standard error; a closed pipe is not an error.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{CellAlignment, Table, presets};
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

    /// The same, with the exit code that says that Ctrl-C ended the work before it was done.
    #[must_use]
    pub(crate) fn interrupted(mut self) -> Self {
        self.code = crate::stop::INTERRUPTED;
        self
    }

    /// Writes the text to standard output. A reader that has seen enough and left is no error; a full disk is.
    pub(crate) fn print(self) -> u8 {
        let text = self.text.trim_end_matches('\n');
        if text.is_empty() {
            return self.code;
        }
        let mut out = std::io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let error = anyhow::Error::from(error).context("cannot write the result to standard output");
                crate::failure::report(&error)
            }
            _ => self.code,
        }
    }
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Print {
    /// Print JSON with fractions instead of text with percent.
    #[arg(long)]
    json: bool,
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    /// Columns for a terminal.
    Text,
    /// For pull requests and wikis.
    Markdown,
    /// For papers (booktabs), no wider than a column.
    Latex,
    /// For spreadsheets.
    Csv,
    /// For scripts: fractions; the same as `--json`.
    Json,
}

/// How a result is printed that is a table.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PrintTable {
    #[command(flatten)]
    print: Print,
    /// How to print the table.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<TableFormat>,
}

impl PrintTable {
    /// The form that was asked for.
    pub(crate) fn format(self) -> TableFormat {
        if self.print.json { TableFormat::Json } else { self.format.unwrap_or(TableFormat::Text) }
    }

    /// `value` as JSON for scripts, or what `text` makes of the form.
    pub(crate) fn result(
        self,
        value: &impl Serialize,
        text: impl FnOnce(TableFormat) -> String,
    ) -> anyhow::Result<Outcome> {
        let format = self.format();
        Print { json: format == TableFormat::Json }.result(value, || text(format))
    }
}

impl Print {
    /// `value` as JSON for scripts, or `text` for people.
    pub(crate) fn result(self, value: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<Outcome> {
        Ok(Outcome::ok(if self.json { format!("{:#}", serde_json::to_value(value)?) } else { text() }))
    }
}

/// Whether notes, lines of progress and bars are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out notes, lines of progress and bars from now on; results and errors stay.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether somebody asked for quiet.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// One line to standard error, unless somebody asked for quiet.
pub(crate) fn say(line: &str) {
    if !is_quiet() {
        complain(line);
    }
}

/// One line to standard error whatever was asked for: an error.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// What a reader of the numbers should know, a line each on standard error.
pub(crate) fn say_notes<N: std::fmt::Display>(notes: impl IntoIterator<Item = N>) {
    for note in notes {
        say(&format!("note: {note}"));
    }
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
    table.load_style(presets::NOTHING);
    // Columns without names need no line for them.
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header);
    }
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
