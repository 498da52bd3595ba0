//! `eval`: what a file of predictions is worth.

use camino::Utf8PathBuf;
use cuemark::{Progress, Score};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::{Leaves, Means, ToolCard, as_json, at_most};
use crate::arguments::{Schema, read, refuse};
use crate::error::Result;

/// Resamples at most.
const RESAMPLES: usize = 100_000;

pub(crate) const CARD: ToolCard = ToolCard {
    name: "eval",
    title: "Score predictions",
    about: "Scores a file of predicted moments against a file of true ones, as `cuemark eval` does: fractions under the metrics' own \
            names, with intervals where `ci` asks for them. Only `truth.path` and `predictions.path` are needed.",
    leaves: Leaves::Nothing,
    schema,
    run,
};

fn schema() -> Schema {
    Schema::of::<Score>().without(&["per_query", "force"])
}

fn run(means: &Means, arguments: JsonObject, progress: &Progress) -> Result<Value> {
    refuse(&arguments, &["per_query", "force"])?;
    let mut score: Score = read(arguments)?;
    at_most("resampling.resamples", score.resampling.resamples, RESAMPLES)?;
    let inside = |field: &'static str, path: &mut Utf8PathBuf| -> Result<()> {
        *path = means.allowed.existing(field, path.as_str())?;
        Ok(())
    };
    inside("truth.path", &mut score.truth.path)?;
    inside("predictions.path", &mut score.predictions.path)?;
    if let Some(durations) = &mut score.truth.reading.durations {
        inside("truth.reading.durations", durations)?;
    }
    if let Some(index) = &mut score.predictions.reading.video_index {
        inside("predictions.reading.video_index", index)?;
    }
    as_json(&score.run(progress)?)
}
