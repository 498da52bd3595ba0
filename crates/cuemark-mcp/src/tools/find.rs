//! `find`: a sentence asked of one film.

use cuemark::{FindInFilm, Progress};
use cuemark_search::encoder::JointEncoder;
use cuemark_speech::subtitle_files;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::search::{MOST, without_others};
use super::{Leaves, Means, ToolCard, as_json, at_most};
use crate::arguments::{Schema, read, refuse};
use crate::error::Result;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "find",
    title: "Find a moment in one film",
    about: "Finds the moments of one film that a sentence describes, without an index. The film is read first, which can take as long \
            as the film; what was made of it is kept in the user's cache folder, so that the next question is answered at once.",
    leaves: Leaves::Nothing,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<FindInFilm>().without(&["device"]).set("limit", "maximum", json!(MOST))
}

fn run(means: &Means, arguments: JsonObject, progress: &Progress) -> Result<Value> {
    refuse(&arguments, &["device"])?;
    let mut find: FindInFilm = read(arguments)?;
    at_most("limit", find.limit, MOST)?;
    find.film = means.allowed.existing("film", find.film.as_str())?;
    find.encoder = encoder(means, &find.encoder)?;
    // What lies beside a film is read with it, and may be a link.
    for file in subtitle_files(&find.film) {
        means.allowed.existing("film", file.as_str())?;
    }
    find.device.clone_from(&means.device);
    as_json(&without_others(means, find.run(progress)?))
}

/// The name of an encoder that comes with cuemark; else the folder of a run, or of an encoder's weights (`clip:FOLDER`), if allowed.
fn encoder(means: &Means, name: &str) -> Result<String> {
    let name = cuemark_search::encoder::chosen(name);
    let folder = |path: &str| means.allowed.existing("encoder", path);
    match name.split_once(':') {
        Some((joint, weights)) if JointEncoder::is_one(joint) => Ok(format!("{joint}:{}", folder(weights)?)),
        _ if JointEncoder::is_one(name) => Ok(name.to_owned()),
        _ => Ok(folder(name)?.into_string()),
    }
}
