//! `cuemark text`: what our shallow parser makes of queries.

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::Queries;
use cuemark_core::QueryId;
use cuemark_text::{Parse, shallow_parse, write_parses};
use rayon::prelude::*;
use serde_json::json;

use crate::input::Force;
use crate::output::{Outcome, Print, thousands};

/// Take queries apart: tags, verb-centred phrases, typed dependencies.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Parse every query of a truth file into JSON lines (`docs/schemas/parse.schema.json`).
    Parse {
        #[command(flatten)]
        queries: Queries,
        /// Where to write the parses.
        #[arg(long, value_name = "FILE")]
        out: Utf8PathBuf,
        #[command(flatten)]
        print: Print,
        #[command(flatten)]
        force: Force,
    },
}

pub(crate) fn run(action: &Action) -> anyhow::Result<Outcome> {
    let Action::Parse { queries, out, print, force } = action;
    force.overwrite().check(out)?;
    let queries = queries.read()?;
    let parses: Vec<(&QueryId, Parse)> =
        queries.par_iter().map(|truth| (&truth.query.id, shallow_parse(&truth.query.text))).collect();
    write_parses(out, force.overwrite(), parses.iter().map(|(id, parse)| (*id, parse)))?;
    let without = parses.iter().filter(|(_, parse)| parse.phrases.is_empty()).count();
    print.result(&json!({ "queries": parses.len(), "without_verb": without, "out": out }), || {
        let (queries, without) = (thousands(parses.len()), thousands(without));
        format!("parsed {queries} queries, {without} without a verb; wrote {out}")
    })
}
