//! `bench encode`: published encoders against the libraries that people run them with.

mod text;
mod vision;

use anyhow::Result;
use serde_json::json;

use super::{Options, Report, Table};

pub(crate) fn run(options: &Options) -> Result<Report> {
    let (sentences, figures) = text::run(options)?;
    let (clips, vision) = vision::run(options)?;
    let tables = std::iter::once(sentences).chain(clips).collect();
    Ok(Report { tables, figures: json!({ "text": figures, "vision": vision }) })
}
