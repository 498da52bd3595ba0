//! Clip features, prepared the way one model wants them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cuemark_core::VideoId;
use cuemark_features::{Durations, FeatureSource, FeatureVariant, Features, Normalise, OpenOptions, Resample, open};
use cuemark_models::Input;
use rustc_hash::FxHashMap;

use crate::scale::Scale;
use crate::{DataConfig, Result, TrainError};

/// What shuffled features are shuffled by: one order for every run, so that runs can be compared.
const VARIANT_SEED: u64 = 0;

/// Bytes of prepared features that are kept in memory; the rest is prepared again when it is asked for.
const KEPT: usize = 4 << 30;

/// The feature loader of a run: the clips of every video, normalised and brought to the model's length.
pub(crate) struct Footage {
    source: Arc<dyn FeatureSource>,
    stream: String,
    /// Streams whose rows stand beside those of the first.
    beside: Vec<String>,
    subtitles: Option<String>,
    audio: Option<String>,
    /// What clip features are brought to before that, where the run says so.
    scale: Option<Arc<Scale>>,
    normalise: Normalise,
    /// What is done to subtitles instead.
    normalise_words: Normalise,
    resample: Resample,
    variant: FeatureVariant,
    kept: Mutex<FxHashMap<(VideoId, Window), Arc<Clips>>>,
    bytes: AtomicUsize,
}

/// What a model sees of one video.
#[derive(Debug)]
pub(crate) struct Clips {
    /// One row per clip.
    pub(crate) visual: Features,
    /// One row per clip, zero where nothing is said.
    pub(crate) subtitle: Option<Features>,
    /// One row per clip.
    pub(crate) audio: Option<Features>,
    /// Where the first row begins, in **seconds** of the video.
    pub(crate) start: f64,
    /// **Seconds** that the rows cover.
    pub(crate) covered: f64,
}

/// Rows of a stored video: the first one and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) first: usize,
    pub(crate) rows: usize,
}

impl Footage {
    /// Opens the features of a run.
    pub(crate) fn open(data: &DataConfig, durations: Durations) -> Result<Self> {
        let row_time = data.row_time().map_err(|problem| {
            let hint = Some("state one of `clip_length` and `rows_span_duration`".into());
            TrainError::Setting { key: "data.clip_length", problem, hint }
        })?;
        let options = OpenOptions {
            stream: data.stream.clone(),
            row_time,
            durations: Arc::new(durations),
            ..OpenOptions::default()
        };
        let source = open(&data.features(), &options)?;
        source.origin(&data.stream)?;
        for stream in data.beside.iter().chain(&data.subtitles).chain(&data.audio) {
            source.origin(stream)?;
        }
        Ok(Self {
            source,
            stream: data.stream.clone(),
            beside: data.beside.clone(),
            subtitles: data.subtitles.clone(),
            audio: data.audio.clone(),
            scale: None,
            normalise: Normalise::None,
            normalise_words: Normalise::None,
            resample: Resample::Cut { rows: usize::MAX },
            variant: FeatureVariant::Seen,
            kept: Mutex::default(),
            bytes: AtomicUsize::new(0),
        })
    }

    /// The same features for a model that wants them as `input` says, on the scale that it was trained on.
    pub(crate) fn prepared(mut self, input: &Input, scale: Option<&Arc<Scale>>) -> Self {
        self.scale = scale.cloned();
        (self.normalise, self.resample) = (input.normalise, input.resample);
        self.normalise_words = input.normalise_words.unwrap_or(input.normalise);
        self
    }

    /// The same features, shuffled or zeroed.
    pub(crate) fn varied(mut self, variant: FeatureVariant) -> Self {
        self.variant = variant;
        self
    }

    /// Widths of everything that clips and queries come with.
    pub(crate) fn widths(&self) -> Result<Widths> {
        let width = |stream: &str| -> Result<usize> {
            let Some(first) = self.source.videos(stream).first().copied() else {
                let path = self.source.origin(stream)?.path.to_owned();
                return Err(TrainError::Folder {
                    path,
                    problem: format!("stream `{stream}` has no video"),
                    hint: "extract or convert features first".into(),
                });
            };
            Ok(self.source.get(first, stream)?.width())
        };
        let optional = |stream: &Option<String>| stream.as_deref().map_or(Ok(0), width);
        Ok(Widths {
            visual: width(&self.stream)? + self.beside.iter().map(|stream| width(stream)).sum::<Result<usize>>()?,
            subtitle: optional(&self.subtitles)?,
            audio: optional(&self.audio)?,
            words: None,
        })
    }

    /// Where they are read from.
    pub(crate) fn source(&self) -> &dyn FeatureSource {
        &*self.source
    }

    /// The median length in **seconds** of the first `sample` videos; that of one clip when there is none.
    pub(crate) fn usual_seconds(&self, sample: usize) -> Result<f64> {
        let mut seconds = Vec::new();
        for video in self.source.videos(&self.stream).into_iter().take(sample) {
            let rows = self.source.read(video, &self.stream)?.rows();
            seconds.push(rows as f64 * self.source.clip_len(video, &self.stream, rows)?.seconds());
        }
        seconds.sort_by(f64::total_cmp);
        Ok(seconds.get(seconds.len() / 2).copied().unwrap_or(1.0))
    }

    /// How the features were made, for the record; `None` for layouts that do not say.
    pub(crate) fn recipe(&self) -> Option<serde_json::Value> {
        let recipe = self.source.origin(&self.stream).ok()?.recipe?;
        serde_json::to_value(recipe).ok()
    }

    /// The stretches of a video that a model which sees only so many rows is shown: half overlapping, the last one flush
    /// with the end; one stretch for every model that sees the whole video.
    pub(crate) fn windows(&self, video: &VideoId, length: Option<f64>) -> Result<Vec<Window>> {
        let rows = self.source.read(video, &self.stream)?.rows();
        let limit = match (length, self.resample) {
            (Some(seconds), _) => {
                let clip = self.source.clip_len(video, &self.stream, rows)?.seconds();
                ((seconds / clip).ceil() as usize).max(1)
            }
            (None, Resample::Cut { rows: limit }) => limit.max(1),
            (None, _) => rows,
        };
        if rows <= limit {
            return Ok(vec![Window { first: 0, rows }]);
        }
        let step = (limit / 2).max(1);
        let mut windows: Vec<Window> = (0..)
            .map(|n| n * step)
            .take_while(|first| first + limit < rows)
            .map(|first| Window { first, rows: limit })
            .collect();
        windows.push(Window { first: rows - limit, rows: limit });
        Ok(windows)
    }

    /// The whole video, or as much of it as the model sees at once.
    pub(crate) fn whole(&self, video: &VideoId) -> Result<Arc<Clips>> {
        self.clips(video, Window { first: 0, rows: usize::MAX })
    }

    /// One stretch of a video.
    pub(crate) fn clips(&self, video: &VideoId, window: Window) -> Result<Arc<Clips>> {
        let key = (video.clone(), window);
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(kept));
        }
        let clips = Arc::new(self.prepare(video, window)?);
        let others = [&clips.subtitle, &clips.audio].into_iter().flatten().map(|features| features.data().len());
        let bytes = 4 * (clips.visual.data().len() + others.sum::<usize>());
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) < KEPT {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&clips));
        }
        Ok(clips)
    }

    /// The rows of a video before anything is done to them, further streams beside the first.
    pub(crate) fn as_stored(&self, video: &VideoId) -> Result<Features> {
        let whole = Window { first: 0, rows: usize::MAX };
        let mut sources = vec![self.source.get(video, &self.stream)?];
        for stream in &self.beside {
            sources.push(self.as_long(video, stream, sources[0].rows(), whole)?);
        }
        Ok(Features::beside(&sources))
    }

    /// Rows of one stream on the model's scale and of the length it wants; `first` numbers of other streams stand before them.
    fn brought(&self, rows: Features, first: usize) -> Features {
        Scale::brought(self.scale.as_ref(), self.normalise, rows, first)
    }

    fn prepare(&self, video: &VideoId, window: Window) -> Result<Clips> {
        let whole = self.source.get(video, &self.stream)?;
        let clip = self.source.clip_len(video, &self.stream, whole.rows())?.seconds();
        let whole = match self.variant {
            FeatureVariant::Seen => whole,
            variant => variant.of(&whole, video, VARIANT_SEED),
        };
        let visual = self.beside(video, cut(&whole, window), window)?;
        if visual.rows() == 0 {
            let path = self.source.origin(&self.stream)?.path.to_owned();
            return Err(TrainError::Folder {
                path,
                problem: format!("video `{video}` has no clip"),
                hint: "extract its features again".into(),
            });
        }
        let seen = if self.resample.keeps_clip_len() { visual.rows().min(self.resample.rows()) } else { visual.rows() };
        let subtitle = match &self.subtitles {
            None => None,
            Some(stream) => {
                let spoken = cut(&self.source.get(video, stream)?, window);
                let aligned = aligned(&spoken, visual.rows());
                Some(self.resample.apply(&self.normalise_words.apply(aligned)))
            }
        };
        let audio = match &self.audio {
            None => None,
            Some(stream) => {
                let sound = self.as_long(video, stream, visual.rows(), window)?;
                Some(self.resample.apply(&self.normalise.apply(sound)))
            }
        };
        // Several streams are normalised one by one before they stand side by side.
        let visual = if self.beside.is_empty() { self.brought(visual, 0) } else { visual };
        Ok(Clips {
            visual: self.resample.apply(&visual),
            subtitle,
            audio,
            start: window.first as f64 * clip,
            covered: seen as f64 * clip,
        })
    }
}

/// How wide the features of clips and queries are, 0 for those that there are none of.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Widths {
    pub(crate) visual: usize,
    pub(crate) subtitle: usize,
    pub(crate) audio: usize,
    /// Of a word, where queries come with features of their own.
    pub(crate) words: Option<usize>,
}

/// Rows by which streams of one video may differ: extractors round the last clip differently.
const ROUNDING: usize = 1;

impl Footage {
    /// The rows of further streams beside those of the first.
    fn beside(&self, video: &VideoId, first: Features, window: Window) -> Result<Features> {
        if self.beside.is_empty() {
            return Ok(first);
        }
        let rows = first.rows();
        let mut before = first.width();
        let mut sources = vec![self.brought(first, 0)];
        for stream in &self.beside {
            let further = self.as_long(video, stream, rows, window)?;
            let width = further.width();
            sources.push(self.brought(further, before));
            before += width;
        }
        Ok(Features::beside(&sources))
    }

    /// The rows of another stream, as many as the clips: one missing at the end is repeated, one too many is dropped.
    ///
    /// # Errors
    /// When they differ by more, which no rounding explains.
    fn as_long(&self, video: &VideoId, stream: &str, rows: usize, window: Window) -> Result<Features> {
        let whole = cut(&self.source.get(video, stream)?, Window { first: window.first, rows: window.rows });
        let found = whole.rows();
        if found.abs_diff(rows) > ROUNDING || found == 0 {
            return Err(TrainError::Folder {
                path: self.source.origin(stream)?.path.to_owned(),
                problem: format!("video `{video}` has {found} rows of `{stream}` for {rows} of `{}`", self.stream),
                hint: "extract both again from the same video, at the same rate".into(),
            });
        }
        let last = whole.row(found - 1).unwrap_or_default().to_vec();
        let data: Vec<f32> =
            whole.data().iter().chain(last.iter().cycle()).copied().take(rows * whole.width()).collect();
        Ok(Features::new(rows, whole.width(), data).unwrap_or(whole))
    }
}

fn cut(features: &Features, window: Window) -> Features {
    let first = window.first.min(features.rows());
    let rows = window.rows.min(features.rows() - first);
    let width = features.width();
    let data = features.data()[first * width..(first + rows) * width].to_vec();
    Features::new(rows, width, data).unwrap_or_else(|| features.clone())
}

/// Subtitle rows brought to the number of visual rows: cut, or filled up with silence.
fn aligned(features: &Features, rows: usize) -> Features {
    let mut data = features.data().to_vec();
    data.resize(rows * features.width(), 0.0);
    Features::new(rows, features.width(), data).unwrap_or_else(|| features.clone())
}
