//! A trained bi-encoder as an encoder.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, Span, VideoId};
use cuemark_features::{FeatureSource, Features, OpenOptions, RowTime};
use cuemark_tensor::Device;
use cuemark_train::{Embedder, RunFolder};
use cuemark_world::sight::Strength;

use super::{EmbeddedVideo, Encoder};
use crate::answer::{ANSWER_NMS, Background, Calibration, RightMoments, distinct, fit_calibration};
use crate::engine::evenly;
use crate::media::{self, WorldFrames};
use crate::{Embedding, Moment, Result, SearchError};

/// Validation queries that calibration looks at.
const CALIBRATION_QUERIES: usize = 150;
/// Answers of each that it looks at: what a person would see.
const CALIBRATION_ANSWERS: usize = 10;

/// A trained bi-encoder of the zoo, by its run folder.
pub struct RunEncoder {
    name: String,
    embedder: Embedder,
    features: Option<Arc<dyn FeatureSource>>,
    /// How clips of a video file become features; `None` when the run's recipe cannot be repeated here.
    sight: Option<Sight>,
    extractor: String,
}

/// A recipe of the built-in world, which works on the pixels of any video.
#[derive(Debug, Clone, Copy)]
struct Sight {
    strength: Strength,
    clip: ClipLen,
    frames_per_clip: usize,
}

impl RunEncoder {
    /// Opens the best checkpoint of a run folder.
    ///
    /// # Errors
    /// When it is no run folder of a bi-encoder.
    pub fn open(folder: &Utf8Path, features: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let path = folder.canonicalize_utf8().map_err(SearchError::io("find", folder))?;
        let embedder = Embedder::open(&RunFolder::new(&path), device)?;
        let features = match features {
            Some(store) => {
                let stream = embedder.run().data.stream.clone();
                Some(cuemark_features::open(store, &OpenOptions { stream, ..OpenOptions::default() })?)
            }
            None => None,
        };
        let recipe = embedder.recipe();
        let sight = recipe.as_ref().and_then(|recipe| {
            let strength = recipe.extractor.strip_prefix("world-")?;
            let strength = Strength::ALL.into_iter().find(|one| one.name() == strength)?;
            let RowTime::Clip(clip) = recipe.row_time else { return None };
            let frames_per_clip = (recipe.fps? * clip.seconds()).round() as usize;
            (frames_per_clip > 0).then_some(Sight { strength, clip, frames_per_clip })
        });
        let extractor = recipe.map_or_else(|| "unknown".to_owned(), |recipe| recipe.extractor);
        Ok(Self { name: path.into_string(), embedder, features, sight, extractor })
    }

    fn of_features(&self, features: &Features, clip: ClipLen, duration: f64) -> Result<EmbeddedVideo> {
        let mut moments = Vec::new();
        for moment in self.embedder.moments(features, clip)? {
            let span = moment.span.clip_to(duration);
            // The last clip may stand for less than a clip, so a moment there may have nothing left.
            let Some(embedding) = Embedding::unit(moment.embedding).filter(|_| !span.is_empty()) else { continue };
            moments.push(Moment { span, embedding });
        }
        Ok(EmbeddedVideo { duration, moments })
    }

    fn stored(&self, id: &VideoId) -> Result<EmbeddedVideo> {
        let stream = &self.embedder.run().data.stream;
        let found = match &self.features {
            Some(source) if source.videos(stream).binary_search(&id).is_ok() => {
                let features = source.get(id, stream)?;
                let clip = source.clip_len(id, stream, features.rows())?;
                Some((features, clip))
            }
            _ => self.embedder.stored(id)?,
        };
        let Some((features, clip)) = found else {
            return Err(SearchError::Encoder {
                encoder: self.name.clone(),
                problem: format!("video `{id}` has no features in the store"),
                hint: "name the store that has them with `--features STORE`",
            });
        };
        let duration = features.rows() as f64 * clip.seconds();
        self.of_features(&features, clip, duration)
    }

    fn watched(&self, sight: Sight, file: &Utf8Path) -> Result<EmbeddedVideo> {
        let probe = media::probe(file)?;
        let fps = sight.frames_per_clip as f64 / sight.clip.seconds();
        let frames = WorldFrames::open(file, fps)?;
        let features = frames.features(sight.frames_per_clip, sight.strength)?;
        self.of_features(&features, sight.clip, probe.duration)
    }
}

impl Encoder for RunEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.embedder.width()
    }

    fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
        let unit = |(numbers, sentence): (Vec<f32>, &&str)| {
            Embedding::unit(numbers).ok_or_else(|| SearchError::Question {
                problem: format!("the encoder makes nothing of `{sentence}`"),
                hint: "say it in other words",
            })
        };
        self.embedder.sentences(sentences)?.into_iter().zip(sentences).map(unit).collect()
    }

    fn video(&self, id: &VideoId, file: Option<&Utf8Path>) -> Result<EmbeddedVideo> {
        match (file, self.sight) {
            (Some(file), Some(sight)) => self.watched(sight, file),
            (Some(file), None) => match self.stored(id) {
                Ok(embedded) => {
                    let duration = media::probe(file)?.duration;
                    Ok(EmbeddedVideo { duration: duration.max(embedded.duration.min(duration)), ..embedded })
                }
                Err(_) => Err(SearchError::Encoder {
                    encoder: self.name.clone(),
                    problem: format!("`{file}`: its features (`{}`) are in no store", self.extractor),
                    hint: "extract them with `cuemark features extract` and name the store with `--features STORE`",
                }),
            },
            (None, _) => self.stored(id),
        }
    }

    fn knows(&self, word: &str) -> bool {
        self.embedder.knows(word)
    }

    /// Asks validation queries of the validation videos, as a search would, and fits on the answers that a person would see.
    /// Every query is asked twice: of all videos, and of those that have no right answer, so that half of what is fitted on
    /// are questions to which there is none. Graded truth (the world's `graded-val`) is used where there is some; otherwise
    /// only the moment that a query was written for counts as right, so that the probability is on the low side.
    fn calibration(&self) -> Result<Option<Calibration>> {
        let data = &self.embedder.run().data;
        let graded = data.split(&format!("graded-{}", data.val));
        let Ok(split) = graded.or_else(|_| data.split(&data.val)) else { return Ok(None) };
        let Ok(videos) = data.split(&data.val) else { return Ok(None) };
        let mut moments: Vec<(VideoId, Moment)> = Vec::new();
        for video in &videos.videos {
            // The run's own features: a store that was named for other videos may have others under the same name.
            let embedded = match self.embedder.stored(&video.id)? {
                Some((features, clip)) => self.of_features(&features, clip, features.rows() as f64 * clip.seconds())?,
                None => self.stored(&video.id)?,
            };
            moments.extend(embedded.moments.into_iter().map(|moment| (video.id.clone(), moment)));
        }
        let sample = evenly(Background::SIZE, moments.len()).filter_map(|place| moments.get(place));
        let background = Background::new(sample.map(|(_, moment)| moment.embedding.clone()).collect());
        let mut judged = Vec::new();
        let step = (split.queries.len() / CALIBRATION_QUERIES).max(1);
        for truth in split.queries.iter().step_by(step) {
            let Some(query) = self.sentences(&[&truth.query.text])?.pop() else { continue };
            let spread = background.spread(&query);
            let right = RightMoments::of(truth);
            let scored =
                |(video, moment): &(VideoId, Moment)| (video.clone(), moment.span, moment.embedding.cosine(&query));
            let mut scored: Vec<(VideoId, Span, f32)> = moments.iter().map(scored).collect();
            scored.sort_by(|a, b| b.2.total_cmp(&a.2));
            let absent = scored.iter().filter(|(video, _, _)| !right.are_in(video)).cloned().collect();
            for ranked in [scored, absent] {
                judged.extend(
                    shown(&ranked).map(|(video, span, score)| (spread.surprise(*score), right.found_by(video, *span))),
                );
            }
        }
        Ok(fit_calibration(&judged))
    }
}

/// The answers of a ranked list that a person would see.
fn shown(ranked: &[(VideoId, Span, f32)]) -> impl Iterator<Item = &(VideoId, Span, f32)> {
    let spans: Vec<(&VideoId, Span)> = ranked.iter().map(|(video, span, _)| (video, *span)).collect();
    distinct(&spans, ANSWER_NMS, CALIBRATION_ANSWERS).into_iter().filter_map(|place| ranked.get(place))
}

/// The run folder as a path.
impl RunEncoder {
    /// Where the run lies.
    pub fn folder(&self) -> Utf8PathBuf {
        self.name.clone().into()
    }
}
