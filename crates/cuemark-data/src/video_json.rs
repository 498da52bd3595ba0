//! The layout most datasets share: one JSON object, a member per video with parallel lists of times and sentences.
//!
//! ```json
//! {"v_abc": {"duration": 82.73, "timestamps": [[0.83, 19.86]], "sentences": [" She waves."]}}
//! ```
//!
//! Datasets differ in the name of the duration and in the unit of the times; each says so in its own file.

use cuemark_core::{RawSpan, Split};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use serde::Deserialize;

use crate::decode;
use crate::split_builder::{SplitBuilder, same_length};
use crate::{ReadOptions, peek::Peek};

/// What stands at a video's name; fields of no use here (`encoded_sentences` …) are passed over.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) duration: Option<f64>,
    pub(crate) video_duration: Option<f64>,
    pub(crate) fps: Option<f64>,
    pub(crate) num_frames: Option<f64>,
    timestamps: Vec<[f64; 2]>,
    sentences: Vec<String>,
}

/// The unit of one video's times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Units per second: 1 where the file has seconds, the frame rate where it has frames.
    pub(crate) per_second: f64,
    /// The video's length in that unit, when the file states it.
    pub(crate) length: Option<f64>,
}

impl Timing {
    /// Times in seconds.
    pub(crate) fn seconds(length: Option<f64>) -> Self {
        Self { per_second: 1.0, length }
    }

    /// Times in frames.
    ///
    /// # Errors
    /// When `fps` is no frame rate.
    pub(crate) fn frames(fps: Option<f64>, length: Option<f64>) -> Result<Self, (&'static str, String)> {
        match fps {
            Some(fps) if fps.is_finite() && fps > 0.0 => Ok(Self { per_second: fps, length }),
            Some(fps) => Err(("fps", format!("{fps} is no frame rate"))),
            None => Err(("fps", "is missing".to_owned())),
        }
    }

    /// The video's length in seconds.
    pub(crate) fn duration(self) -> Option<f64> {
        self.length.map(|length| length / self.per_second)
    }

    /// A pair of times in seconds.
    pub(crate) fn span(self, [start, end]: [f64; 2]) -> RawSpan {
        RawSpan::from_frames(start, end, self.per_second)
    }
}

/// Whether a file begins like this layout.
pub(crate) fn looks_like(peek: &Peek) -> bool {
    peek.opens_with("{") && peek.has_all(2, &["timestamps", "sentences"]) && !peek.has(2, "retrieval_pool")
}

/// Reads a file whose videos' times have the unit that `timing` tells from the entry.
pub(crate) fn read(
    source: &Source,
    options: &ReadOptions,
    timing: fn(&Entry) -> Result<Timing, (&'static str, String)>,
) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let members = document.root().entries()?;
    let entries: Vec<Entry> = decode::members(&members)?;
    let mut split = SplitBuilder::new(source, options);
    let mut number = 0;
    for (member, entry) in members.iter().zip(entries) {
        let id = member.key();
        let timing = timing(&entry).map_err(|(field, problem)| member.record(field, problem))?;
        same_length("sentences", entry.sentences.len(), "timestamps", entry.timestamps.len())
            .map_err(|problem| member.record("sentences", problem))?;
        let duration = timing
            .duration()
            .or_else(|| options.duration(id))
            .ok_or_else(|| member.record("duration", "is missing").with_hint("pass a file of durations beside it"))?;
        let video = split.new_video(id, Some(duration), || (member.line(), format!("{id}.duration")))?;
        for (index, (times, text)) in entry.timestamps.into_iter().zip(entry.sentences).enumerate() {
            let place = |_: &_| (member.line(), format!("{id}.timestamps[{index}]"));
            split.pair(number, &video, timing.span(times), text, place)?;
            number += 1;
        }
    }
    Ok(vec![split.finish()])
}
