//! `cargo xtask bench`: both sides of a ratio measured in one run, on this machine.

mod arena;
mod encode;
mod eval;
mod features;
mod inputs;
mod joint;
mod protocols;
mod python;
mod report;
mod scale;
mod search;
mod spread;
mod steps;
mod text;
mod threads;
mod train;
mod versions;
mod zoo;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::process::workspace;

/// One bench.
pub(crate) struct Bench {
    /// What one types.
    pub(crate) name: &'static str,
    /// What it measures.
    pub(crate) about: &'static str,
    run: fn(&Options) -> Result<Report>,
}

/// Every bench, in the order of `cargo xtask help`.
pub(crate) const BENCHES: &[Bench] = &[
    Bench { name: "encode", about: "MiniLM against sentence-transformers on real queries", run: encode::run },
    Bench {
        name: "eval",
        about: "scoring against the field's Python evaluators, growth up to a million queries, cost of intervals",
        run: eval::run,
    },
    Bench {
        name: "features",
        about: "HDF5 files in every layout of h5py's, read by the library of the default program and by h5py",
        run: features::run,
    },
    Bench {
        name: "joint",
        about: "networks of moments and highlights: a training step and one query against PyTorch at the published size",
        run: joint::run,
    },
    Bench {
        name: "protocols",
        about: "kernel density against SciPy and its growth, the likest sentences against a plain matrix product",
        run: protocols::run,
    },
    Bench {
        name: "report",
        about: "a report over 300 evaluated runs of 17,505 queries: time and memory",
        run: report::run,
    },
    Bench {
        name: "python",
        about: "cuemark.evaluate on arrays against the field's Python evaluators, two threads at once, the wheel's size",
        run: python::run,
    },
    Bench {
        name: "scale",
        about: "one table and one picture of cost against size, from what the other benches recorded",
        run: scale::run,
    },
    Bench {
        name: "search",
        about: "a million moments of world videos against hnswlib: recall, queries a second, memory, build",
        run: search::run,
    },
    Bench {
        name: "text",
        about: "MMN with DistilBERT fine-tuned: a training step and one query against PyTorch at the published size",
        run: text::run,
    },
    Bench {
        name: "threads",
        about: "a training step with 1 to 16 threads against PyTorch, and whether the weights stay the same to the last bit",
        run: threads::run,
    },
    Bench {
        name: "train",
        about: "2D-TAN's inference and training step against dense PyTorch, with the bound that the cells set",
        run: train::run,
    },
    Bench {
        name: "versions",
        about: "adding to an index and searching it: this program against another of its versions (CUEMARK_BENCH_OTHER)",
        run: versions::run,
    },
    Bench {
        name: "zoo",
        about: "every model at its published size: parameters, training step, one query, memory, published figures",
        run: zoo::run,
    },
];

/// How to run a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// Runs of each side; medians are reported.
    pub(crate) repeat: usize,
    /// Whether to write the result under `results/bench/`.
    pub(crate) record: bool,
}

impl Options {
    /// From the words after the bench's name.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        crate::only_known(words, "bench NAME [--repeat N] [--record]")?;
        let repeat = crate::option(words, "--repeat")?.unwrap_or(5).max(1);
        Ok(Self { repeat, record: words.contains(&"--record") })
    }
}

/// What a bench found out.
pub(crate) struct Report {
    /// Tables for people.
    pub(crate) tables: Vec<Table>,
    /// The same and more for scripts.
    pub(crate) figures: Value,
}

/// One table of a report.
pub(crate) struct Table {
    /// What it shows.
    pub(crate) title: String,
    /// Names of the columns.
    pub(crate) header: Vec<&'static str>,
    /// Cells, as many per row as there are columns.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_owned()).collect();
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("## {}\n\n{}{}{rows}", self.title, line(&header), line(&rule))
    }
}

/// Runs the bench called `name`, prints its tables and, when asked, writes them under `results/bench/`.
pub(crate) fn run(name: &str, options: &Options) -> Result<ExitCode> {
    let bench = BENCHES.iter().find(|bench| bench.name == name);
    let bench = bench.with_context(|| format!("no such bench: `{name}`; `cargo xtask help` lists them"))?;
    let machine = Machine::here();
    let report = (bench.run)(options)?;
    let tables: Vec<String> = report.tables.iter().map(Table::to_markdown).collect();
    let text = format!(
        "# cargo xtask bench {name}\n\n{}\n\n{} runs of each side; median (lowest to highest).\n\n{}",
        machine.describe(),
        options.repeat,
        tables.join("\n")
    );
    print!("{text}");
    if options.record {
        let stem = workspace().join("results/bench").join(format!("{name}-{}", machine.date));
        let figures = json!({"bench": name, "machine": machine.to_json(), "figures": report.figures});
        std::fs::write(stem.with_extension("md"), &text)?;
        std::fs::write(stem.with_extension("json"), format!("{figures:#}\n"))?;
        println!("\nwritten to {}.md and .json", stem.display());
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let table = Table { title: "T".into(), header: vec!["a", "b"], rows: vec![vec!["1".into(), "2".into()]] };
        assert_eq!(table.to_markdown(), "## T\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }

    #[test]
    fn options_have_defaults_and_bad_ones_are_refused() {
        assert_eq!(Options::parse(&[]).unwrap(), Options { repeat: 5, record: false });
        assert_eq!(Options::parse(&["--record", "--repeat", "3"]).unwrap(), Options { repeat: 3, record: true });
        assert!(Options::parse(&["--repeat"]).is_err());
        assert!(Options::parse(&["--repeat", "many"]).is_err());
    }
}
