//! `cuemark mcp`: tools for assistants over standard input and output.

use std::time::Duration;

use camino::Utf8PathBuf;
use cuemark_mcp::{McpOptions, Writing};

use crate::output::{Outcome, say};

/// Let an assistant search your films: tools over standard input and output.
///
/// They are offered through the Model Context Protocol, whose clients start this themselves; `docs/assistants.md` has the lines for
/// their settings. The tools are `films`, `search`, `find`, `clip`, `index_status` and `eval`. They read what lies inside the allowed
/// folders and nothing else: links that lead out are refused. Nothing is written there unless `--allow-write` says so, and nothing is
/// ever replaced.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Allow this folder; may be repeated. Default: the current folder
    #[arg(long, value_name = "DIR")]
    root: Vec<Utf8PathBuf>,
    /// Let clips be written into the allowed folders, as new files. Without it they go to a temporary folder.
    #[arg(long)]
    allow_write: bool,
    /// What to compute on: cpu, cuda, cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// How long one call may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let roots = if args.root.is_empty() { vec![Utf8PathBuf::from(".")] } else { args.root.clone() };
    let writing = if args.allow_write { Writing::New } else { Writing::Never };
    let (device, time) = (args.device.clone(), Duration::from_secs(args.time));
    cuemark_mcp::serve(McpOptions { roots, writing, device, time }, say)?;
    Ok(Outcome::ok(""))
}
