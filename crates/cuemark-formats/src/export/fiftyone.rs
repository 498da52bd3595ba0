//! FiftyOne: `labels.json` of a `FiftyOneTemporalDetectionDataset`, which it reads beside a folder of the videos.

use serde_json::{Map, Value, json};

use super::{Clip, by_video};
use crate::{Result, WholeFile};

/// Writes `{"labels": {VIDEO: [{"label", "timestamps", "confidence", "attributes"}]}}`, seconds.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(clips: &[Clip], out: &mut WholeFile) -> Result<()> {
    let label = |clip: &&Clip| {
        let mut label = json!({
            "label": clip.label(),
            "timestamps": [clip.span.start(), clip.span.end()],
            "attributes": { "qid": clip.query },
        });
        if let Some(score) = clip.score.filter(|score| score.is_finite()) {
            label["confidence"] = score.into();
        }
        label
    };
    let videos = by_video(clips).into_iter();
    let labels: Map<String, Value> =
        videos.map(|(video, clips)| (video.to_string(), clips.iter().map(label).collect())).collect();
    out.put_json(&json!({ "labels": labels }))?;
    out.put(b"\n")
}
