//! `films`: what there is to ask.

use cuemark::{ListFilms, Progress};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{Leaves, Means, ToolCard, as_json};
use crate::arguments::{Schema, read};
use crate::error::Result;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "films",
    title: "List films and indexes",
    about: "Lists the indexes and the films below the allowed folders, or below one folder in them. Answers with whole paths, which \
            the other tools take.",
    leaves: Leaves::Nothing,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<ListFilms>().optional("folders", "Folders to look below. Default: all that are allowed")
}

fn run(means: &Means, mut arguments: JsonObject, progress: &Progress) -> Result<Value> {
    arguments.entry("folders").or_insert_with(|| json!(means.allowed.roots()));
    let mut request: ListFilms = read(arguments)?;
    for folder in &mut request.folders {
        *folder = means.allowed.existing("folders", folder.as_str())?;
    }
    let mut answer = as_json(&request.run(progress)?)?;
    answer["allowed"] = json!(means.allowed.roots());
    Ok(answer)
}
