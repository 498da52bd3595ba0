//! How features were made: the header that travels with them.

use std::collections::BTreeMap;

use cuemark_core::ClipLen;
use serde::{Deserialize, Serialize};

/// What one row of a stream stands for. Always stated, never assumed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowTime {
    /// Row `i` covers seconds `[i * clip, (i + 1) * clip)`.
    Clip(ClipLen),
    /// The `n` rows of a video share its `d` seconds evenly: row `i` covers `[i * d / n, (i + 1) * d / n)`. The store
    /// keeps `d` beside each video's rows.
    SpanDuration,
}

impl From<ClipLen> for RowTime {
    fn from(clip_len: ClipLen) -> Self {
        Self::Clip(clip_len)
    }
}

/// How the features of one stream were made. Two stores with equal recipes may be mixed; others may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Recipe {
    /// What turned the input into numbers: `world-motion`, `clip-vit-b-32` …
    pub extractor: String,
    /// Hash of the extractor's weights; `None` when it has none.
    pub weights: Option<String>,
    /// Frames a second that the extractor looked at; `None` for streams that are not made from frames.
    pub fps: Option<f64>,
    /// What one row stands for.
    pub row_time: RowTime,
    /// Numbers per row.
    pub width: usize,
    /// Width and height of the picture the extractor saw, in pixels; `None` when it is not resized or not a picture.
    pub resize: Option<[usize; 2]>,
    /// Everything else that changes the numbers, by name.
    pub settings: BTreeMap<String, String>,
}

/// The most frames a second.
const MOST_FPS: f64 = 1_000.0;
/// The longest clip, in seconds: a day.
const LONGEST_CLIP: f64 = 86_400.0;

/// A recipe as it stands in a header.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    extractor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fps: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clip_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rows_span_duration: bool,
    width: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resize: Option<[usize; 2]>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
}

impl TryFrom<Written> for Recipe {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { extractor, weights, fps, clip_seconds, rows_span_duration, width, resize, settings } = written;
        let row_time = match (clip_seconds, rows_span_duration) {
            (Some(seconds), false) => ClipLen::new(seconds)
                .map(RowTime::Clip)
                .ok_or_else(|| format!("`clip_seconds`: {seconds} is not a positive number of seconds"))?,
            (None, true) => RowTime::SpanDuration,
            (None, false) => return Err("neither `clip_seconds` nor `rows_span_duration` is there".to_owned()),
            (Some(_), true) => return Err("both `clip_seconds` and `rows_span_duration` are there".to_owned()),
        };
        // What is beyond these bounds is damage, or made to ask for memory: nobody films so fast, and no film lasts so long.
        if let Some(fps) = fps.filter(|fps| !(*fps > 0.0 && *fps <= MOST_FPS)) {
            return Err(format!("`fps`: {fps} is not a number of frames a second up to {MOST_FPS}"));
        }
        if let Some(seconds) = clip_seconds.filter(|seconds| *seconds > LONGEST_CLIP) {
            return Err(format!("`clip_seconds`: {seconds} is more than {LONGEST_CLIP} s"));
        }
        if width == 0 {
            return Err("`width`: rows without numbers".to_owned());
        }
        Ok(Self { extractor, weights, fps, row_time, width, resize, settings })
    }
}

impl From<Recipe> for Written {
    fn from(recipe: Recipe) -> Self {
        let Recipe { extractor, weights, fps, row_time, width, resize, settings } = recipe;
        let clip_seconds = match row_time {
            RowTime::Clip(clip_len) => Some(clip_len.seconds()),
            RowTime::SpanDuration => None,
        };
        let rows_span_duration = row_time == RowTime::SpanDuration;
        Self { extractor, weights, fps, clip_seconds, rows_span_duration, width, resize, settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Recipe, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_recipe_without_a_clip_length_is_refused_not_defaulted() {
        let message = read(r#"{"extractor":"x","width":4}"#).unwrap_err().to_string();
        assert!(message.contains("clip_seconds"), "{message}");
    }

    #[test]
    fn clip_lengths_and_rates_that_cannot_be_are_refused() {
        for text in [
            r#"{"extractor":"x","clip_seconds":0,"width":4}"#,
            r#"{"extractor":"x","clip_seconds":-1.5,"width":4}"#,
            r#"{"extractor":"x","clip_seconds":1,"fps":0,"width":4}"#,
            r#"{"extractor":"x","clip_seconds":1,"fps":1e18,"width":4}"#,
            r#"{"extractor":"x","clip_seconds":1e300,"fps":6,"width":4}"#,
            r#"{"extractor":"x","clip_seconds":1,"width":0}"#,
            r#"{"extractor":"x","clip_seconds":1,"rows_span_duration":true,"width":4}"#,
            r#"{"extractor":"x","rows_span_duration":false,"width":4}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_recipe_survives_being_written() {
        let recipe =
            read(r#"{"extractor":"x","fps":6,"clip_seconds":1.5,"width":4,"resize":[64,48],"settings":{"a":"b"}}"#);
        let recipe = recipe.unwrap();
        assert_eq!(recipe.row_time, RowTime::Clip(ClipLen::new(1.5).unwrap()));
        assert_eq!(read(&serde_json::to_string(&recipe).unwrap()).unwrap(), recipe);
        let spanning = read(r#"{"extractor":"x","rows_span_duration":true,"width":4}"#).unwrap();
        assert_eq!(spanning.row_time, RowTime::SpanDuration);
        assert_eq!(read(&serde_json::to_string(&spanning).unwrap()).unwrap(), spanning);
    }
}
