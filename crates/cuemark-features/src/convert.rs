//! Features of any layout into a store of ours.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use camino::Utf8Path;
use cuemark_core::{Advice, Progress, Rng, VideoId};
use cuemark_formats::{Overwrite, ReadError};
use rayon::prelude::*;
use serde::Serialize;

use crate::shard::Covers;
use crate::{
    FeatureError, FeatureSource, Features, Normalise, Pca, Precision, Recipe, Resample, Result, RowTime, StoreWriter,
    VideoFeatures,
};

/// Videos per shard.
const SHARD: usize = 64;
/// At most this many rows of one video go into the sample that a projection is fitted on, so that the sample spans many.
const SAMPLED_PER_VIDEO: usize = 16;

/// What is done to the features on their way, in this order: project, normalise, resample.
#[derive(Debug, Clone, Default)]
pub struct ConvertOptions {
    /// What turned the video into numbers, where the source does not say. Default: the name of the source's file
    pub extractor: Option<String>,
    /// A projection for a source of one stream.
    pub pca: Option<Pca>,
    /// Brings rows to length 1. Default: leaves them
    pub normalise: Normalise,
    /// Brings videos to another number of rows. Default: leaves them
    pub resample: Option<Resample>,
    /// The digits to keep. Default: `f32`
    pub precision: Precision,
    /// Whether a store that is there may be replaced.
    pub overwrite: Overwrite,
}

/// What was converted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertReport {
    /// The streams, sorted.
    pub streams: Vec<String>,
    /// Videos in the store.
    pub videos: usize,
    /// Of these, videos that an earlier, stopped run had converted.
    pub resumed: usize,
    /// Rows written by this run, over all streams.
    pub rows: usize,
}

/// Converts every video of every stream of `source` into a store in `out`. Stopped work is resumed: shards appear whole or
/// not at all, and those that are there are kept when they were made in the same way of the same videos. `progress` counts
/// videos.
///
/// # Errors
/// When a video cannot be read, is of another width than the first, or holds numbers that are not finite; when nobody said how
/// long a clip is; when `out` holds something else; when the disk refuses; when it was stopped.
pub fn convert(
    source: &dyn FeatureSource,
    out: &Utf8Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let streams: Vec<String> = source.streams().into_iter().map(str::to_owned).collect();
    if options.pca.is_some() && streams.len() != 1 {
        let problem = format!("one projection cannot fit {} streams", streams.len());
        return Err(ReadError::file(out, problem).with_hint("convert each stream into a store of its own").into());
    }
    for stream in &streams {
        refuse_same_place(source.origin(stream)?.path, out)?;
    }
    let recipes = streams
        .iter()
        .map(|stream| Ok((stream.clone(), recipe(source, stream, options)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let writer = StoreWriter::create(out, recipes, options.overwrite)?.with_precision(options.precision);
    let present = |stream: &String| (stream.clone(), source.videos(stream).into_iter().collect());
    let work = Work { source, streams: streams.iter().map(present).collect(), options, writer, progress };
    let videos: BTreeSet<&VideoId> = work.streams.iter().flat_map(|(_, videos)| videos).copied().collect();
    let videos: Vec<&VideoId> = videos.into_iter().collect();
    progress.announce(videos.len());
    let shards = videos.chunks(SHARD);
    let others = |shard: usize| {
        let problem = format!("shard {shard} holds other videos than the source has now");
        ReadError::file(out, problem).with_hint(Advice::say("pass ").set("force").and(" to start over"))
    };
    let mut report = ConvertReport { videos: videos.len(), streams, resumed: 0, rows: 0 };
    if work.writer.has_shard(shards.len()) {
        return Err(others(shards.len()).into());
    }
    for (shard, videos) in shards.enumerate() {
        match work.writer.shard_videos(shard)? {
            Some(there) if there.iter().eq(videos.iter().copied()) => {
                report.resumed += videos.len();
                progress.advance(videos.len())?;
            }
            Some(_) => return Err(others(shard).into()),
            None => report.rows += work.write_shard(shard, videos)?,
        }
    }
    Ok(report)
}

/// Rows of at most `rows` rows in all, from many videos of a stream, for [`Pca::fit`]; the seed decides which.
///
/// # Errors
/// When a video cannot be read, or is of another width than those before.
pub fn sample_rows(source: &dyn FeatureSource, stream: &str, rows: usize, seed: u64) -> Result<Features> {
    source.origin(stream)?;
    let mut videos = source.videos(stream);
    let mut rng = Rng::stream(seed, "rows for principal components");
    rng.shuffle(&mut videos);
    let each = SAMPLED_PER_VIDEO.max(rows.div_ceil(videos.len().max(1)));
    let (mut taken, mut width, mut data) = (0, None, Vec::new());
    for video in videos {
        if taken >= rows {
            break;
        }
        let features = source.get(video, stream)?;
        let expected = *width.get_or_insert(features.width());
        if features.width() != expected {
            let problem = format!("`{stream}` is {} wide, other videos are {expected}", features.width());
            return Err(FeatureError::Unfit { video: video.clone(), problem });
        }
        let mut order: Vec<usize> = (0..features.rows()).collect();
        rng.shuffle(&mut order);
        order.truncate(each.min(rows - taken));
        taken += order.len();
        data.extend(order.iter().filter_map(|row| features.row(*row)).flatten());
    }
    Ok(Features::from_parts(taken, width.unwrap_or_default(), data))
}

fn refuse_same_place(source: &Utf8Path, out: &Utf8Path) -> Result<()> {
    match (source.canonicalize_utf8(), out.canonicalize_utf8()) {
        (Ok(source), Ok(out)) if source == out => {
            let fault = ReadError::file(&out, "is what the features are read from");
            Err(fault.with_hint("write them to another folder").into())
        }
        _ => Ok(()),
    }
}

/// How the converted stream was made: as the source says, and what is done now.
fn recipe(source: &dyn FeatureSource, stream: &str, options: &ConvertOptions) -> Result<Recipe> {
    let origin = source.origin(stream)?;
    let nothing = || ReadError::file(origin.path, format!("has no `{stream}` features of any video"));
    let first = *source.videos(stream).first().ok_or_else(nothing)?;
    let width = source.read(first, stream)?.width();
    let row_time = origin
        .row_time
        .ok_or_else(|| FeatureError::NoClipLen { path: origin.path.to_owned(), stream: stream.to_owned() })?;
    let name = || origin.path.file_stem().unwrap_or(origin.path.as_str()).to_owned();
    let mut recipe = origin.recipe.cloned().unwrap_or_else(|| Recipe {
        extractor: options.extractor.clone().unwrap_or_else(name),
        weights: None,
        fps: None,
        row_time,
        width,
        resize: None,
        settings: BTreeMap::from([("layout".to_owned(), origin.layout.to_string())]),
    });
    let mut note = |step: &str, how: String| {
        // What an earlier conversion did stays on record.
        let done = recipe.settings.get(step).map(|before| format!("{before}, ")).unwrap_or_default();
        recipe.settings.insert(step.to_owned(), format!("{done}{how}"));
    };
    if let Some(pca) = &options.pca {
        note("pca", format!("{} of {}, {}", pca.components(), pca.width(), pca.fingerprint()));
    }
    match options.normalise {
        Normalise::None => {}
        Normalise::L2 => note("normalise", "l2".to_owned()),
        Normalise::L2Eps => note("normalise", "l2-eps".to_owned()),
    }
    if let Some(rule) = options.resample {
        note("resample", rule.to_string());
    }
    if options.precision == Precision::F16 {
        note("dtype", options.precision.to_string());
    }
    recipe.width = options.pca.as_ref().map_or(width, Pca::components);
    if options.resample.is_some_and(|rule| !rule.keeps_clip_len()) {
        recipe.row_time = RowTime::SpanDuration;
    }
    Ok(recipe)
}

/// What is to be done for every shard.
struct Work<'a> {
    source: &'a dyn FeatureSource,
    /// Every stream with the videos that have it.
    streams: Vec<(String, HashSet<&'a VideoId>)>,
    options: &'a ConvertOptions,
    writer: StoreWriter,
    progress: &'a Progress,
}

impl Work<'_> {
    /// Converts and writes one shard; returns its rows.
    fn write_shard(&self, shard: usize, videos: &[&VideoId]) -> Result<usize> {
        let converted = videos
            .par_iter()
            .map(|video| {
                let converted = self.convert_video(video)?;
                self.progress.advance(1)?;
                Ok(converted)
            })
            .collect::<Result<Vec<_>>>()?;
        let (mut covers, mut rows) = (Covers::default(), 0);
        let videos: Vec<VideoFeatures> = converted
            .into_iter()
            .map(|(video, seconds)| {
                for ((stream, features), seconds) in video.streams.iter().zip(seconds) {
                    covers.insert(stream, &video.video, seconds);
                    rows += features.rows();
                }
                video
            })
            .collect();
        self.writer.write_shard_covering(shard, &videos, &covers)?;
        Ok(rows)
    }

    /// One video in every stream that has it, and the seconds that its rows cover in each.
    fn convert_video(&self, video: &VideoId) -> Result<(VideoFeatures, Vec<f64>)> {
        let ConvertOptions { pca, normalise, resample, .. } = self.options;
        let (mut converted, mut covers) = (Vec::new(), Vec::new());
        for (stream, _) in self.streams.iter().filter(|(_, videos)| videos.contains(video)) {
            let unfit = |problem| FeatureError::Unfit { video: video.clone(), problem };
            let features = self.source.get(video, stream)?;
            if features.rows() == 0 {
                return Err(unfit(format!("`{stream}` has no rows")));
            }
            let clip_len = self.source.clip_len(video, stream, features.rows())?;
            let projected = match pca {
                None => features,
                Some(pca) => pca.apply(&features).ok_or_else(|| {
                    unfit(format!("`{stream}` is {} wide, the projection takes {}", features.width(), pca.width()))
                })?,
            };
            let before = projected.rows();
            let normalised = normalise.apply(projected);
            let resampled = match resample {
                None => normalised,
                Some(rule) => rule.apply(&normalised),
            };
            // Rows that are cut take their time with them; rows that are merged or repeated share it.
            let kept = if resample.is_none_or(Resample::keeps_clip_len) { resampled.rows() } else { before };
            covers.push(clip_len.seconds() * kept as f64);
            converted.push((stream.clone(), resampled));
        }
        Ok((VideoFeatures { video: video.clone(), streams: converted }, covers))
    }
}
