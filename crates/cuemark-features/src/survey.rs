//! What is in a source, read from end to end.

use std::collections::BTreeMap;

use cuemark_core::{Progress, VideoId, whole_message};
use rayon::prelude::*;
use serde::Serialize;

use crate::{FeatureSource, Features, Recipe, Result, RowTime};

/// One stream, counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSurvey {
    /// Its name.
    pub stream: String,
    /// Where it lies.
    pub path: String,
    /// Its layout, by name.
    pub layout: String,
    /// How it was made; `None` for layouts that do not say.
    pub recipe: Option<Recipe>,
    /// Seconds that one row stands for; `None` when they differ from video to video or nobody said.
    pub clip_seconds: Option<f64>,
    /// Whether rows share each video's duration evenly.
    pub rows_span_duration: bool,
    /// Videos that were read.
    pub videos: usize,
    /// Their rows.
    pub rows: usize,
    /// The fewest rows of a video.
    pub fewest_rows: usize,
    /// The most rows of a video.
    pub most_rows: usize,
    /// Numbers per row, and how many videos are so wide. More than one entry is a fault.
    pub widths: Vec<Width>,
    /// Rows that are all zero: clips without speech, or padding.
    pub zero_rows: usize,
    /// Rows that hold NaN or an infinity.
    pub bad_rows: usize,
    /// The videos that have such rows, sorted.
    pub bad: Vec<BadVideo>,
    /// Videos that could not be read, sorted.
    pub unreadable: Vec<Unreadable>,
}

/// Videos of one width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Width {
    /// Numbers per row.
    pub width: usize,
    /// Videos that are so wide.
    pub videos: usize,
    /// The first of them.
    pub example: VideoId,
}

/// A video with numbers that are not finite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BadVideo {
    /// The video.
    pub video: VideoId,
    /// How many of its rows hold such numbers.
    pub rows: usize,
    /// The first of them.
    pub first: usize,
}

/// A video that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unreadable {
    /// The video.
    pub video: VideoId,
    /// Why.
    pub problem: String,
}

impl StreamSurvey {
    /// Whether nothing is wrong with it.
    pub fn is_sound(&self) -> bool {
        self.bad_rows == 0 && self.unreadable.is_empty() && self.widths.len() <= 1
    }
}

/// One video, counted.
struct Counted {
    rows: usize,
    width: usize,
    zero: usize,
    bad: usize,
    first_bad: Option<usize>,
}

impl Counted {
    fn of(features: &Features) -> Self {
        let rows = (0..features.rows()).filter_map(|row| features.row(row));
        Self {
            rows: features.rows(),
            width: features.width(),
            zero: rows.clone().filter(|row| row.iter().all(|number| *number == 0.0)).count(),
            bad: rows.filter(|row| row.iter().any(|number| !number.is_finite())).count(),
            first_bad: features.first_bad_row(),
        }
    }
}

/// Reads every video of every stream and counts; what is wrong with a video is part of the answer. `progress` counts
/// videos, once for each stream.
///
/// # Errors
/// When a stream vanishes meanwhile, or it was stopped.
pub fn survey(source: &dyn FeatureSource, progress: &Progress) -> Result<Vec<StreamSurvey>> {
    progress.announce(source.streams().iter().map(|stream| source.videos(stream).len()).sum());
    source.streams().into_iter().map(|stream| survey_stream(source, stream, progress)).collect()
}

fn survey_stream(source: &dyn FeatureSource, stream: &str, progress: &Progress) -> Result<StreamSurvey> {
    let origin = source.origin(stream)?;
    let mut survey = StreamSurvey {
        stream: stream.to_owned(),
        path: origin.path.to_string(),
        layout: origin.layout.to_string(),
        recipe: origin.recipe.cloned(),
        clip_seconds: match origin.row_time {
            Some(RowTime::Clip(clip_len)) => Some(clip_len.seconds()),
            _ => None,
        },
        rows_span_duration: origin.row_time == Some(RowTime::SpanDuration),
        videos: 0,
        rows: 0,
        fewest_rows: usize::MAX,
        most_rows: 0,
        widths: Vec::new(),
        zero_rows: 0,
        bad_rows: 0,
        bad: Vec::new(),
        unreadable: Vec::new(),
    };
    let counted = source
        .videos(stream)
        .into_par_iter()
        .map(|video| {
            let counted = source.read(video, stream).map(|features| Counted::of(&features));
            progress.advance(1)?;
            Ok((video, counted))
        })
        .collect::<Result<Vec<(&VideoId, Result<Counted>)>>>()?;
    let mut widths: BTreeMap<usize, Width> = BTreeMap::new();
    for (video, counted) in counted {
        let counted = match counted {
            Ok(counted) => counted,
            Err(error) => {
                survey.unreadable.push(Unreadable { video: video.clone(), problem: whole_message(&error) });
                continue;
            }
        };
        survey.videos += 1;
        survey.rows += counted.rows;
        survey.fewest_rows = survey.fewest_rows.min(counted.rows);
        survey.most_rows = survey.most_rows.max(counted.rows);
        survey.zero_rows += counted.zero;
        survey.bad_rows += counted.bad;
        if let Some(first) = counted.first_bad {
            survey.bad.push(BadVideo { video: video.clone(), rows: counted.bad, first });
        }
        let width = counted.width;
        widths.entry(width).or_insert_with(|| Width { width, videos: 0, example: video.clone() }).videos += 1;
    }
    survey.fewest_rows = survey.fewest_rows.min(survey.most_rows);
    survey.widths = widths.into_values().collect();
    Ok(survey)
}
