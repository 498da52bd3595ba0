//! `index_status`: what is in an index.

use cuemark::{DescribeIndex, IndexPlace, Progress};
use cuemark_search::EngineUrl;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{Leaves, Means, ToolCard, as_json};
use crate::McpError;
use crate::arguments::{Schema, read, refuse, take};
use crate::error::Result;

/// Videos that are listed at most.
const VIDEOS: usize = 500;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "index_status",
    title: "What is in an index",
    about: "Says what an index holds: how many videos and moments, which encoder, and with `videos` the first 500 videos with their \
            lengths, tags and what was heard and read in them.",
    leaves: Leaves::Nothing,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<IndexPlace>().and(Schema::of::<DescribeIndex>()).without(&["device", "place"]).set(
        "index",
        "description",
        "The folder of an index, as `films` lists it.".into(),
    )
}

fn run(means: &Means, mut arguments: JsonObject, progress: &Progress) -> Result<Value> {
    refuse(&arguments, &["device", "place"])?;
    let place: IndexPlace = read(take(&mut arguments, &["index"]))?;
    arguments.insert("place".to_owned(), as_json(&local(means, place)?)?);
    let request: DescribeIndex = read(arguments)?;
    let mut described = request.run(progress)?;
    let all = described.videos.as_ref().map_or(0, Vec::len);
    for video in described.videos.iter_mut().flatten() {
        video.path = video.path.take().filter(|path| means.allowed.holds(path));
    }
    described.videos = described.videos.map(|videos| videos.into_iter().take(VIDEOS).collect());
    let mut answer = as_json(&described)?;
    if all > VIDEOS {
        answer["more_videos"] = json!(all - VIDEOS);
    }
    Ok(answer)
}

/// The same index when it is a folder that was allowed: nobody is sent to other machines.
pub(super) fn local(means: &Means, mut place: IndexPlace) -> Result<IndexPlace> {
    let EngineUrl::File(folder) = place.url()? else {
        return Err(McpError::argument("index", "only indexes in the allowed folders may be asked"));
    };
    place.index = format!("file:{}", means.allowed.existing("index", folder.as_str())?);
    place.device.clone_from(&means.device);
    Ok(place)
}
