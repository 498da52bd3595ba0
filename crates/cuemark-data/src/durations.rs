//! How long videos last, from files beside the annotations.
//!
//! Read from a CSV file with the columns `id` and `length` (as Charades has), or from a JSON object that gives for each
//! video a number, a list that begins with one (`[90.08, 19614]`, as TVR has) or an object with `duration` or
//! `video_duration`; an object of such objects is read too. Seconds everywhere.

use cuemark_core::VideoId;
use cuemark_formats::json::{Document, Member};
use cuemark_formats::{Result, Source};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::decode;

/// Durations of videos, in **seconds**; each is positive and finite.
#[derive(Debug, Clone, Default)]
pub struct Durations(FxHashMap<VideoId, f64>);

impl Durations {
    /// Reads a file in one of the layouts above, told apart by content.
    ///
    /// # Errors
    /// When it is laid out in none of them, or says that a video lasts no time.
    pub fn read(source: &Source) -> Result<Self> {
        let head = source.head(64)?;
        let mut durations = Self::default();
        if head.trim_ascii_start().starts_with(b"{") {
            let document = Document::read(source)?;
            durations.take_object(&document.root(), 0)?;
        } else {
            for (line, Row { id, length }) in decode::csv_records(source)? {
                let seconds = checked(length).map_err(|problem| source.record(line, "length", problem))?;
                durations.insert(&id, seconds);
            }
        }
        Ok(durations)
    }

    /// The duration of `video`, in seconds.
    pub fn get(&self, video: &str) -> Option<f64> {
        self.0.get(video).copied()
    }

    /// Sets the duration of `video`, in seconds, in place of what was known.
    pub(crate) fn insert(&mut self, video: &str, seconds: f64) {
        self.0.insert(VideoId::from(video), seconds);
    }

    /// Takes over everything that `other` knows, in place of what was known.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Number of videos.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no duration is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take_object(&mut self, object: &Member<'_>, depth: usize) -> Result<()> {
        for member in object.entries()? {
            let seconds = match member.text().bytes().next() {
                Some(b'{') => match member.decode::<Entry>()? {
                    Entry { duration: Some(seconds), .. } | Entry { video_duration: Some(seconds), .. } => seconds,
                    // Split names come before video names in TVR's index; nothing nests deeper.
                    _ if depth == 0 => {
                        self.take_object(&member, 1)?;
                        continue;
                    }
                    _ => return Err(member.record("duration", "is missing")),
                },
                Some(b'[') => {
                    let numbers: Vec<f64> = member.decode()?;
                    *numbers.first().ok_or_else(|| member.record("", "is an empty list"))?
                }
                _ => member.decode()?,
            };
            let seconds = checked(seconds).map_err(|problem| member.record("", problem))?;
            self.insert(member.key(), seconds);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Row {
    id: String,
    length: f64,
}

#[derive(Deserialize)]
struct Entry {
    duration: Option<f64>,
    video_duration: Option<f64>,
}

/// `seconds`, when a video can last that long.
pub(crate) fn checked(seconds: f64) -> Result<f64, String> {
    // No film lasts thirty years; a number beyond that is a fault, and sums of such numbers would overflow.
    if seconds > 0.0 && seconds < 1e9 { Ok(seconds) } else { Err(format!("{seconds} is no duration in seconds")) }
}
