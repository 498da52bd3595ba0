//! A trained bi-encoder as an encoder.

use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use cuemark_core::{Advice, ClipLen, Progress, Span, VideoId};
use cuemark_encoders::extract::extract_video;
use cuemark_encoders::visual::{self, ClipEncoder, EncoderOptions};
use cuemark_features::{FeatureSource, Features, OpenOptions, RowTime};
use cuemark_formats::Source;
use cuemark_media::Ffmpeg;
use cuemark_tensor::Device;
use cuemark_train::{Embedder, RunFolder};

use super::scales::check_moments;
use super::stored::stated_duration;
use super::{EmbeddedVideo, Encoder};
use crate::answer::{ANSWER_NMS, Background, Calibration, JudgedAnswer, RightMoments, distinct, fit_with_scores};
use crate::engine::evenly;
use crate::{Embedding, IndexedMoment, KeptFile, Result, SearchError};

/// Validation queries that calibration looks at.
const CALIBRATION_QUERIES: usize = 150;
/// Answers of each that it looks at: what a person would see.
const CALIBRATION_ANSWERS: usize = 10;
/// Lies beside a run whose curve was fitted once and for all.
const FITTED: &str = "calibration.json";

/// A trained bi-encoder of the zoo, by its run folder.
pub struct RunEncoder {
    name: String,
    folder: RunFolder,
    embedder: Embedder,
    features: Option<Arc<dyn FeatureSource>>,
    device: Device,
    /// What makes the same features of a file. Opened when the first file comes: its weights are not needed to search.
    clips: OnceLock<Box<dyn ClipEncoder>>,
}

impl RunEncoder {
    /// Opens the best checkpoint of a run folder.
    ///
    /// # Errors
    /// When it is no run folder of a bi-encoder.
    pub fn open(folder: &Utf8Path, features: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let path = folder.canonicalize_utf8().map_err(SearchError::io("find", folder))?;
        Self::open_as(path.clone().into_string(), &path, features, device)
    }

    /// As [`RunEncoder::open`], of a folder that another name stands for: what an index keeps of the run of that name.
    ///
    /// # Errors
    /// As [`RunEncoder::open`].
    pub fn open_as(name: String, folder: &Utf8Path, features: Option<&Utf8Path>, device: &Device) -> Result<Self> {
        let folder = RunFolder::new(folder);
        let embedder = Embedder::open(&folder, device)?;
        let features = match features {
            Some(store) => {
                let stream = embedder.run().data.stream.clone();
                Some(cuemark_features::open(store, &OpenOptions { stream, ..OpenOptions::default() })?)
            }
            None => None,
        };
        Ok(Self { name, folder, embedder, features, device: device.clone(), clips: OnceLock::new() })
    }

    fn fault(&self, problem: String, advice: Advice) -> SearchError {
        SearchError::Encoder { encoder: self.name.clone(), problem, advice }
    }

    /// What makes of files the features that the run was trained on: the published encoder, or the world's eyes, that its store
    /// names.
    fn clips(&self) -> Result<&dyn ClipEncoder> {
        if let Some(clips) = self.clips.get() {
            return Ok(clips.as_ref());
        }
        let recipe = self.embedder.recipe();
        let (Some(recipe), Some(fps)) = (recipe, recipe.and_then(|recipe| recipe.fps)) else {
            return Err(self.fault("the run's features do not say how they were made".to_owned(), extract()));
        };
        let RowTime::Clip(clip) = recipe.row_time else {
            return Err(self.fault("the run's features have no clips of one length".to_owned(), extract()));
        };
        // Absurd rates and lengths are refused when the encoder is opened.
        let stride = (fps * clip.seconds()).round() as usize;
        let frames = recipe.settings.get("clip_frames").and_then(|frames| frames.parse().ok()).unwrap_or(stride);
        let (fps, frames, stride) = (Some(fps), Some(frames), Some(stride));
        let options = EncoderOptions { device: self.device.clone(), fps, frames, stride, ..EncoderOptions::default() };
        let clips = visual::open(&recipe.extractor, &options)?;
        let mine = clips.recipe();
        if (&mine.weights, mine.width) != (&recipe.weights, recipe.width) {
            let problem =
                format!("the weights of `{}` here are not those that made the run's features", recipe.extractor);
            return Err(self.fault(problem, extract()));
        }
        Ok(self.clips.get_or_init(|| clips).as_ref())
    }

    fn of_features(&self, features: &Features, clip: ClipLen, duration: f64) -> Result<EmbeddedVideo> {
        let mut moments = Vec::new();
        for moment in self.embedder.moments(features, clip)? {
            let span = moment.span.clip_to(duration);
            // The last clip may stand for less than a clip, so a moment there may have nothing left.
            let Some(embedding) = Embedding::unit(moment.embedding).filter(|_| !span.is_empty()) else { continue };
            moments.push(IndexedMoment { span, embedding });
        }
        Ok(EmbeddedVideo { duration, moments, partial: None })
    }

    /// Features from a store that was named for these videos.
    fn named(&self, id: &VideoId) -> Result<Option<(Features, ClipLen)>> {
        let stream = &self.embedder.run().data.stream;
        let Some(source) = &self.features else { return Ok(None) };
        if source.videos(stream).binary_search(&id).is_err() {
            return Ok(None);
        }
        let features = source.get(id, stream)?;
        let clip = source.clip_len(id, stream, features.rows())?;
        Ok(Some((features, clip)))
    }

    /// Features from that store, or else from the one that the run was trained on.
    fn stored(&self, id: &VideoId) -> Result<(Features, ClipLen)> {
        let found = match self.named(id)? {
            Some(found) => Some(found),
            None => self.embedder.stored(id)?,
        };
        let missing = || {
            self.fault(
                format!("video `{id}` has no features in the store"),
                Advice::say("name the store that has them in ").setting("features"),
            )
        };
        found.ok_or_else(missing)
    }

    fn watched(&self, file: &Utf8Path, progress: &Progress) -> Result<EmbeddedVideo> {
        let clips = self.clips()?;
        let extracted = extract_video(&Ffmpeg::on_path(), file, clips, progress)?;
        let embedded =
            self.of_features(&extracted.features, clips.sampling().clip_len()?, extracted.decoded.duration())?;
        Ok(EmbeddedVideo { partial: extracted.decoded.partial(), ..embedded })
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
                advice: "say it in other words".into(),
            })
        };
        self.embedder.sentences(sentences)?.into_iter().zip(sentences).map(unit).collect()
    }

    fn video(&self, id: &VideoId, file: Option<&Utf8Path>, progress: &Progress) -> Result<EmbeddedVideo> {
        let embedded = match (file, self.named(id)?) {
            (None, None) => {
                let (features, clip) = self.stored(id)?;
                self.of_features(&features, clip, features.rows() as f64 * clip.seconds())?
            }
            (file, Some((features, clip))) => {
                let duration = stated_duration(file, progress)?.unwrap_or(features.rows() as f64 * clip.seconds());
                self.of_features(&features, clip, duration)?
            }
            (Some(file), None) => self.watched(file, progress)?,
        };
        check_moments(embedded.moments.len(), embedded.duration, &self.name, id)?;
        Ok(embedded)
    }

    fn knows(&self, word: &str) -> bool {
        self.embedder.knows(word)
    }

    fn keeps(&self) -> Result<Vec<KeptFile>> {
        let files = self.embedder.files(&self.folder)?;
        Ok(files.into_iter().map(|(name, bytes)| KeptFile { name, bytes }).collect())
    }

    /// What was fitted once and laid beside the run as `calibration.json`. Where nothing lies there, it asks validation queries of
    /// the validation videos, as a search would, and fits on the answers that a person would see.
    /// Every query is asked twice: of all videos, and of those that have no right answer, so that half of what is fitted on
    /// are questions to which there is none. Graded truth (the world's `graded-val`) is used where there is some; otherwise
    /// only the moment that a query was written for counts as right, so that the probability is on the low side.
    fn calibration(&self) -> Result<Option<Calibration>> {
        let fitted = self.folder.path().join(FITTED);
        if fitted.is_file() {
            let text = Source::new(&fitted).text()?;
            let read = serde_json::from_str(&text);
            return Ok(Some(read.map_err(|error| self.fault(format!("{fitted} is damaged: {error}"), extract()))?));
        }
        let data = &self.embedder.run().data;
        let graded = data.split(&format!("graded-{}", data.val));
        let Ok(split) = graded.or_else(|_| data.split(&data.val)) else { return Ok(None) };
        let Ok(videos) = data.split(&data.val) else { return Ok(None) };
        let mut moments: Vec<(VideoId, IndexedMoment)> = Vec::new();
        for video in &videos.videos {
            // The run's own features: a store that was named for other videos may have others under the same name.
            let embedded = match self.embedder.stored(&video.id)? {
                Some((features, clip)) => self.of_features(&features, clip, features.rows() as f64 * clip.seconds())?,
                None => {
                    let (features, clip) = self.stored(&video.id)?;
                    self.of_features(&features, clip, features.rows() as f64 * clip.seconds())?
                }
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
            let scored = |(video, moment): &(VideoId, IndexedMoment)| {
                (video.clone(), moment.span, moment.embedding.cosine(&query))
            };
            let mut scored: Vec<(VideoId, Span, f32)> = moments.iter().map(scored).collect();
            scored.sort_by(|a, b| b.2.total_cmp(&a.2));
            let absent = scored.iter().filter(|(video, _, _)| !right.are_in(video)).cloned().collect();
            for ranked in [scored, absent] {
                judged.extend(shown(&ranked).map(|(video, span, score)| JudgedAnswer {
                    z: spread.surprise(*score),
                    score: f64::from(*score),
                    right: right.found_by(video, *span),
                }));
            }
        }
        Ok(fit_with_scores(&judged))
    }
}

/// What to do where features cannot be made here.
fn extract() -> Advice {
    Advice::say("extract them with ").run("features extract").and(" and pass ").set_any("features", "STORE")
}

/// The answers of a ranked list that a person would see.
fn shown(ranked: &[(VideoId, Span, f32)]) -> impl Iterator<Item = &(VideoId, Span, f32)> {
    let spans: Vec<(&VideoId, Span)> = ranked.iter().map(|(video, span, _)| (video, *span)).collect();
    distinct(&spans, ANSWER_NMS, CALIBRATION_ANSWERS).into_iter().filter_map(|place| ranked.get(place))
}
