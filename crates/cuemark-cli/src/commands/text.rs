//! `cuemark text`: what our shallow parser makes of queries.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use clap::Subcommand;
use cuemark::Queries;
use cuemark_core::{Query, QueryId};
use cuemark_formats::Source;
use cuemark_text::{Parse, read_labelled_roles, shallow_parse, write_parses};
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
        /// Take the roles that a semantic-role labeller found, as AllenNLP's SRL-BERT prints them, instead of parsing: the phrases of TRM.
        #[arg(long, value_name = "FILE.jsonl")]
        roles: Option<Utf8PathBuf>,
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
    let Action::Parse { queries, roles, out, print, force } = action;
    force.overwrite().check(out)?;
    let queries = queries.read()?;
    if let Some(roles) = roles {
        let asked: Vec<&Query> = queries.iter().map(|truth| &truth.query).collect();
        let done = read_labelled_roles(&Source::new(roles), &asked)?;
        write_parses(out, force.overwrite(), done.parses.iter().map(|(id, parse)| (id, parse)))?;
        let report = &done.report;
        return print.result(report, || {
            let named = |roles: &BTreeMap<String, usize>| roles.keys().cloned().collect::<Vec<_>>().join(", ");
            let rare = if report.rare.is_empty() { String::new() } else { format!("; rare: {}", named(&report.rare)) };
            format!(
                "{} queries, {} without a verb; roles kept: {}{rare}; {} shared by two verbs; wrote {out}",
                thousands(report.queries),
                thousands(report.without_verb),
                named(&report.kept),
                thousands(report.shared)
            )
        });
    }
    let parses: Vec<(&QueryId, Parse)> =
        queries.par_iter().map(|truth| (&truth.query.id, shallow_parse(&truth.query.text))).collect();
    write_parses(out, force.overwrite(), parses.iter().map(|(id, parse)| (*id, parse)))?;
    let without = parses.iter().filter(|(_, parse)| parse.phrases.is_empty()).count();
    print.result(&json!({ "queries": parses.len(), "without_verb": without, "out": out }), || {
        let (queries, without) = (thousands(parses.len()), thousands(without));
        format!("parsed {queries} queries, {without} without a verb; wrote {out}")
    })
}
