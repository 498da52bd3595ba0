//! `search`: a sentence asked of an index.

use cuemark::{Ask, Asking, Found, IndexPlace, Progress};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{Leaves, Means, ToolCard, as_json, at_most};
use crate::arguments::{Schema, read, refuse, take};
use crate::error::Result;
use crate::tools::index_status::local;

/// Answers that an assistant reads at most.
pub(super) const MOST: usize = 50;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "search",
    title: "Search films",
    about: "Finds the moments that a sentence describes in the films of an index: video, start and end in seconds, a probability, and \
            why (what is seen, said or written there). `good` is how many answers are good enough; 0 means that nothing is.",
    leaves: Leaves::Nothing,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<IndexPlace>()
        .and(Schema::of::<Asking>())
        .without(&["device"])
        .set("index", "description", "The folder of an index, as `films` lists it.".into())
        .set("limit", "maximum", json!(MOST))
}

fn run(means: &Means, mut arguments: JsonObject, progress: &Progress) -> Result<Value> {
    refuse(&arguments, &["device"])?;
    let place: IndexPlace = read(take(&mut arguments, &["index"]))?;
    let asking: Asking = read(arguments)?;
    at_most("limit", asking.limit, MOST)?;
    let ask = Ask { place: local(means, place)?, asking };
    as_json(&without_others(means, ask.run(progress)?))
}

/// The same answers; films outside of the allowed folders lose their paths, since no tool would open them.
pub(super) fn without_others(means: &Means, mut found: Found) -> Found {
    for answer in &mut found.answers {
        if !answer.path.as_ref().is_some_and(|path| means.allowed.holds(path.as_str().into())) {
            (answer.path, answer.playable) = (None, false);
        }
    }
    found
}
