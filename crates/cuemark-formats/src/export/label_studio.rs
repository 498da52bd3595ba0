//! Label Studio: one task a video, its moments as ranges of frames on a timeline, ready to be corrected.

use serde_json::{Value, json};

use super::{Clip, FrameRate, by_video};
use crate::{Result, WholeFile};

/// Writes `[{"data": {"video", "fps"}, "predictions": [{"result": […]}]}]`; frames count from 1, as Label Studio's do.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(clips: &[Clip], rate: FrameRate, out: &mut WholeFile) -> Result<()> {
    let result = |(place, clip): (usize, &&Clip)| {
        let (start, end) = (rate.frame(clip.span.start()) + 1, rate.frame(clip.span.end()));
        let mut result = json!({
            "id": format!("{}-{place}", clip.query),
            "type": "timelinelabels",
            "from_name": "moments",
            "to_name": "video",
            "value": { "ranges": [{ "start": start, "end": end.max(start) }], "timelinelabels": [clip.label()] },
            "meta": { "qid": clip.query },
        });
        if let Some(score) = clip.score.filter(|score| score.is_finite()) {
            result["score"] = score.into();
        }
        result
    };
    let task = |(video, clips): (&cuemark_core::VideoId, Vec<&Clip>)| {
        let results: Vec<Value> = clips.iter().enumerate().map(result).collect();
        let data = json!({ "video": video, "fps": rate.frames() });
        json!({ "data": data, "predictions": [{ "model_version": "cuemark", "result": results }] })
    };
    let tasks: Vec<Value> = by_video(clips).into_iter().map(task).collect();
    out.put_json(&tasks)?;
    out.put(b"\n")
}
