//! `bench encode`: published encoders against the libraries that people run them with.

mod text;

use anyhow::Result;
use serde_json::json;

use super::{Options, Report, Table};

pub(crate) fn run(options: &Options) -> Result<Report> {
    let (sentences, figures) = text::run(options)?;
    Ok(Report { tables: vec![sentences], figures: json!({ "text": figures }) })
}
