//! Making a world: scripts, sentences, frames, features, files.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use cuemark_core::{Advice, ClipLen, Progress, QueryId, Rng, Truth, VideoId};
use cuemark_features::sight::{self, ClipView, Picture, Strength};
use cuemark_features::{Features, Recipe, StoreWriter, VISUAL, VideoFeatures};
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile, world_folder, write_truth};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::films::{self, SplitFilms};
use crate::queries::Asked;
use crate::raters::RatedQuery;
use crate::render::FPS;
use crate::{Camera, Film, Frame, Meaning, Reels, Result, WorldOptions, graded, hearing, layout, mp4, pools, raters};

/// The layout of a world's folder; another number means another layout.
const VERSION: u32 = 1;
/// Frames in one clip: one second.
const FRAMES_PER_CLIP: usize = FPS;
/// Videos in one shard of features.
const SHARD: usize = 64;
/// Pixels per stage unit in video files: 320 × 240.
pub(crate) const REEL_SCALE: usize = 5;
/// Stands in the folder of a world that is not finished, with its options.
const UNFINISHED: &str = "unfinished.json";

/// What a split holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitCount {
    /// Its name.
    pub name: String,
    /// Its videos.
    pub videos: usize,
    /// Its queries.
    pub queries: usize,
}

/// What the raters did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingCount {
    /// How many there are.
    pub raters: usize,
    /// Seconds of a rated clip.
    pub clip_seconds: f64,
    /// How far they are from what a clip shows, in grades.
    pub disagreement: f64,
    /// Clips they rated, over all splits.
    pub clips: usize,
}

/// What was made; the manifest holds the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorldReport {
    /// Version of the folder's layout.
    pub world: u32,
    /// Version of the program that made it.
    pub cuemark: String,
    /// Every knob, the seed among them.
    pub options: WorldOptions,
    /// Frames a second.
    pub fps: usize,
    /// Seconds per clip.
    pub clip_seconds: f64,
    /// What each split holds.
    pub splits: Vec<SplitCount>,
    /// Events in all films.
    pub events: usize,
    /// Spoken lines in all films.
    pub lines: usize,
    /// Different words in the queries of all splits.
    pub words: usize,
    /// Queries of `graded.jsonl`.
    pub graded: usize,
    /// Queries of `pools.jsonl`.
    pub pools: usize,
    /// What stands in `highlights/`; worlds of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratings: Option<RatingCount>,
}

/// Makes a world in the folder `out`; `progress` counts videos.
///
/// Work that was stopped is resumed by calling it again with the same options: finished shards are kept.
///
/// # Errors
/// When a knob is out of range, files are in the way, the disk refuses, `ffmpeg` is wanted and not there, or it was
/// stopped.
pub fn make(options: &WorldOptions, out: &Utf8Path, progress: &Progress) -> Result<WorldReport> {
    options.check()?;
    if options.reels == Reels::Mp4 {
        mp4::check_program()?;
    }
    let overwrite = claim(options, out)?;
    let splits = films::write_all(options);
    let report = write_texts(options, out, &splits)?;
    let films: Vec<&Film> = splits.iter().flat_map(SplitFilms::only_films).collect();
    write_features(options, out, &films, overwrite, progress)?;
    let manifest = serde_json::to_vec_pretty(&report).map_err(|error| ReadError::file(out, error))?;
    WholeFile::write_all_to(out.join(layout::MANIFEST), Overwrite::Force, &manifest)?;
    let unfinished = out.join(UNFINISHED);
    std::fs::remove_file(&unfinished).map_err(|source| ReadError::Write { path: unfinished, source })?;
    Ok(report)
}

/// Makes the folder ours: refuses to touch a finished world or somebody else's files, unless told to.
///
/// Returns whether finished shards are to be kept ([`Overwrite::Never`]) or made again.
fn claim(options: &WorldOptions, out: &Utf8Path) -> Result<Overwrite> {
    let unfinished = out.join(UNFINISHED);
    let ours = serde_json::to_string(options).map_err(|error| ReadError::file(out, error))?;
    if options.overwrite == Overwrite::Never {
        if unfinished.exists() {
            if Source::new(&unfinished).text()? == ours {
                return Ok(Overwrite::Never);
            }
            let fault = ReadError::file(out, "holds an unfinished world of other options");
            let advice = Advice::say("pass its options to finish it, or ").set("force").and(" to start over");
            return Err(fault.with_hint(advice).into());
        }
        for name in [layout::MANIFEST, layout::EVENTS, "splits", "videos"] {
            Overwrite::Never.check(&out.join(name))?;
        }
    }
    let manifest = out.join(layout::MANIFEST);
    if manifest.exists() {
        std::fs::remove_file(&manifest).map_err(|source| ReadError::Write { path: manifest, source })?;
    }
    WholeFile::write_all_to(unfinished, Overwrite::Force, ours.as_bytes())?;
    Ok(options.overwrite)
}

/// Everything that is text: splits, pools, grades, parses, meanings, subtitles and the log itself.
fn write_texts(options: &WorldOptions, out: &Utf8Path, splits: &[SplitFilms; 4]) -> Result<WorldReport> {
    let [_, val, iid, _] = splits;
    let (graded, graded_val) = (graded::write(iid, options), graded::write(val, options));
    let pools = pools::write(iid, options);
    for split in splits {
        write_truths(&world_folder::split(out, split.name), &split.truths())?;
    }
    let truths = |asked: &[Asked]| asked.iter().map(|asked| asked.truth.clone()).collect::<Vec<_>>();
    write_truths(&out.join(layout::GRADED), &truths(&graded))?;
    write_truths(&out.join(layout::GRADED_VAL), &truths(&graded_val))?;
    write_truths(&out.join(layout::POOLS), &pools)?;
    let mut rated_clips = 0;
    for split in splits {
        let rated = raters::rate(split, options);
        rated_clips += rated.iter().map(RatedQuery::clips).sum::<usize>();
        write_lines(&world_folder::ratings(out, split.name), rated.iter())?;
    }

    let every = || splits.iter().flat_map(SplitFilms::asked).chain(&graded).chain(&graded_val);
    let films = || splits.iter().flat_map(SplitFilms::only_films);
    let parses = every().map(|asked| (&asked.truth.query.id, &asked.parse));
    cuemark_text::write_parses(out.join(world_folder::PARSES), Overwrite::Force, parses)?;
    write_lines(&out.join(layout::MEANINGS), every().map(MeaningLine::of))?;
    write_lines(&out.join(layout::SUBTITLES), films().map(SubtitleLine::of))?;
    write_lines(&out.join(layout::EVENTS), films())?;

    let asked = splits.iter().flat_map(SplitFilms::asked);
    let words: BTreeSet<&str> = asked.flat_map(|asked| &asked.parse.tokens).map(|token| token.text.as_str()).collect();
    let count = |split: &SplitFilms| SplitCount {
        name: split.name.to_owned(),
        videos: split.films.len(),
        queries: split.asked().count(),
    };
    Ok(WorldReport {
        world: VERSION,
        cuemark: env!("CARGO_PKG_VERSION").to_owned(),
        options: options.clone(),
        fps: FPS,
        clip_seconds: FRAMES_PER_CLIP as f64 / FPS as f64,
        splits: splits.iter().map(count).collect(),
        events: films().map(|film| film.events.len()).sum(),
        lines: films().map(|film| film.lines.len()).sum(),
        words: words.len(),
        graded: graded.len(),
        pools: pools.len(),
        ratings: Some(RatingCount {
            raters: raters::RATERS,
            clip_seconds: raters::CLIP_SECONDS,
            disagreement: options.disagreement,
            clips: rated_clips,
        }),
    })
}

fn write_truths(path: &Utf8Path, truths: &[Truth]) -> Result<()> {
    let mut file = WholeFile::create(path, Overwrite::Force)?;
    write_truth(truths, &mut file)?;
    Ok(file.finish()?)
}

fn write_lines(path: &Utf8Path, lines: impl Iterator<Item = impl Serialize>) -> Result<()> {
    let mut file = WholeFile::create(path, Overwrite::Force)?;
    for line in lines {
        let mut bytes = serde_json::to_vec(&line).map_err(|error| ReadError::file(path, error))?;
        bytes.push(b'\n');
        file.put(&bytes)?;
    }
    Ok(file.finish()?)
}

/// One line of `meanings.jsonl`.
#[derive(Serialize)]
struct MeaningLine<'a> {
    qid: &'a QueryId,
    meaning: &'a Meaning,
}

impl<'a> MeaningLine<'a> {
    fn of(asked: &'a Asked) -> Self {
        Self { qid: &asked.truth.query.id, meaning: &asked.meaning }
    }
}

/// One line of `subtitles.jsonl`, in TVR's layout.
#[derive(Serialize)]
struct SubtitleLine<'a> {
    vid_name: &'a VideoId,
    sub: Vec<Spoken<'a>>,
}

#[derive(Serialize)]
struct Spoken<'a> {
    text: &'a str,
    start: f64,
    end: f64,
}

impl<'a> SubtitleLine<'a> {
    fn of(film: &'a Film) -> Self {
        let spoken = film.lines.iter();
        let sub = spoken.map(|line| Spoken { text: &line.text, start: line.span.start(), end: line.span.end() });
        Self { vid_name: &film.video, sub: sub.collect() }
    }
}

/// Renders every film and writes its features at every strength, a shard at a time.
fn write_features(
    options: &WorldOptions,
    out: &Utf8Path,
    films: &[&Film],
    overwrite: Overwrite,
    progress: &Progress,
) -> Result<()> {
    let clip_len = clip_len();
    let stores = options
        .strengths
        .iter()
        .map(|strength| {
            let folder = world_folder::features(out, strength.name());
            let recipes = recipes(options, *strength, clip_len)?;
            Ok((*strength, StoreWriter::create(&folder, recipes, overwrite)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let camera = Camera::new(1, options.noise, options.seed);
    let reel_camera = (options.reels == Reels::Mp4).then(|| reel_camera(options));
    progress.phase("filming", films.len());
    for (shard, films) in films.chunks(SHARD).enumerate() {
        let reel = |film: &Film| match &reel_camera {
            Some(camera) => mp4::write(film, camera, options.seed, &out.join("videos"), overwrite),
            None => Ok(()),
        };
        if stores.iter().all(|(_, store)| store.has_shard(shard)) {
            films.par_iter().try_for_each(|film| reel(film))?;
            progress.advance(films.len())?;
            continue;
        }
        let viewed = films
            .par_iter()
            .map(|film| {
                reel(film)?;
                let clips = view(camera.shoot(film, frame_noise(options.seed, film)));
                let heard = hearing::features(&film.lines, clip_len, clips.len());
                progress.advance(1)?;
                Ok((film.video.clone(), clips, heard))
            })
            .collect::<Result<Vec<_>>>()?;
        for (strength, store) in stores.iter().filter(|(_, store)| !store.has_shard(shard)) {
            let of_strength = |(video, clips, heard): &(VideoId, Vec<ClipView>, Features)| VideoFeatures {
                video: video.clone(),
                streams: vec![
                    (VISUAL.to_owned(), sight::features(clips, *strength)),
                    ("subtitle".to_owned(), heard.clone()),
                ],
            };
            let videos: Vec<VideoFeatures> = viewed.iter().map(of_strength).collect();
            store.write_shard(shard, &videos)?;
        }
    }
    Ok(())
}

/// What one row of features stands for.
pub(crate) fn clip_len() -> ClipLen {
    ClipLen::new(FRAMES_PER_CLIP as f64 / FPS as f64).unwrap_or_else(|| unreachable!("one second"))
}

/// What video files are shot with.
pub(crate) fn reel_camera(options: &WorldOptions) -> Camera {
    // A sensor with more pixels is less noisy seen from the same distance; and noise is most of a video file's size.
    Camera::new(REEL_SCALE, options.noise / REEL_SCALE as f64, options.seed)
}

/// The random stream of one film's camera.
pub(crate) fn frame_noise(seed: u64, film: &Film) -> Rng {
    Rng::stream(seed, &format!("frames of {}", film.video))
}

/// Looks at a film clip by clip; only one clip's frames are held at a time.
pub(crate) fn view(mut frames: impl Iterator<Item = Frame>) -> Vec<ClipView> {
    let mut clips = Vec::new();
    loop {
        let clip: Vec<Frame> = frames.by_ref().take(FRAMES_PER_CLIP).collect();
        if clip.is_empty() {
            return clips;
        }
        let pictures: Vec<Picture> = clip.iter().map(Frame::picture).collect();
        clips.push(ClipView::of(&pictures));
    }
}

/// How the pictures of a store are made; the world's options are part of it, so that two worlds are never mixed.
pub(crate) fn visual_recipe(options: &WorldOptions, strength: Strength, clip_len: ClipLen) -> Result<Recipe> {
    Ok(Recipe {
        extractor: format!("world-{}", strength.name()),
        weights: None,
        fps: Some(FPS as f64),
        row_time: clip_len.into(),
        width: strength.width(),
        resize: None,
        settings: settings(options)?,
    })
}

fn settings(options: &WorldOptions) -> Result<BTreeMap<String, String>> {
    let world = serde_json::to_string(options).map_err(|error| ReadError::file(Utf8Path::new("options"), error))?;
    Ok(BTreeMap::from([("world".to_owned(), world)]))
}

/// How both streams of a store are made.
fn recipes(options: &WorldOptions, strength: Strength, clip_len: ClipLen) -> Result<BTreeMap<String, Recipe>> {
    let visual = visual_recipe(options, strength, clip_len)?;
    let subtitle = Recipe {
        extractor: "world-hashed-words".to_owned(),
        weights: None,
        fps: None,
        row_time: clip_len.into(),
        width: hearing::WIDTH,
        resize: None,
        settings: settings(options)?,
    };
    Ok(BTreeMap::from([(VISUAL.to_owned(), visual), ("subtitle".to_owned(), subtitle)]))
}
