//! `clip`: a moment as a file of its own.

use cuemark::{CutClip, Progress};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{Leaves, Means, ToolCard, as_json};
use crate::McpError;
use crate::arguments::{Schema, read, refuse};
use crate::error::Result;

/// The longest clip, in **seconds**.
const LONGEST: f64 = 600.0;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "clip",
    title: "Cut a clip",
    about: "Cuts a stretch of a film into a file of its own and answers with its path. Without `out` the clip lies in a temporary folder \
            that goes when this server ends; `out` is allowed only where the server was started with --allow-write. Nothing is replaced.",
    leaves: Leaves::NewFiles,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<CutClip>()
        .without(&["force"])
        .set("film", "description", "The film, as `films` lists it or `path` of an answer says.".into())
        .optional("out", "A new file in an allowed folder, ending in mp4, mov, mkv or webm. Default: a temporary one")
}

fn run(means: &Means, mut arguments: JsonObject, progress: &Progress) -> Result<Value> {
    refuse(&arguments, &["force"])?;
    if arguments.get("out").is_none_or(Value::is_null) {
        arguments.insert("out".to_owned(), json!(""));
    }
    let mut cut: CutClip = read(arguments)?;
    cut.film = means.allowed.existing("film", cut.film.as_str())?;
    if cut.end - cut.start > LONGEST {
        return Err(McpError::argument("end", format!("a clip has {LONGEST} s at most")));
    }
    cut.out = match cut.out.as_str() {
        "" => means.clips.next(),
        out => means.allowed.new_file("out", out)?,
    };
    as_json(&cut.run(progress)?)
}
