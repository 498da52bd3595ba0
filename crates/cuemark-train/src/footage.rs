//! Clip features, prepared the way one model wants them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cuemark_core::{ClipLen, VideoId};
use cuemark_features::{
    Durations, FeatureSource, FeatureVariant, Features, Normalise, OpenOptions, Resample, RowTime, open,
};
use rustc_hash::FxHashMap;

use crate::{DataConfig, Result, TrainError};

/// What shuffled features are shuffled by: one order for every run, so that runs can be compared.
const VARIANT_SEED: u64 = 0;

/// Bytes of prepared features that are kept in memory; the rest is prepared again when it is asked for.
const KEPT: usize = 4 << 30;

/// The clips of every video, normalised and brought to the model's length.
pub(crate) struct Footage {
    source: Arc<dyn FeatureSource>,
    stream: String,
    subtitles: Option<String>,
    normalise: Normalise,
    resample: Resample,
    variant: Option<FeatureVariant>,
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
        let row_time = match (data.clip_length, data.rows_span_duration) {
            (Some(seconds), false) => {
                Some(RowTime::Clip(ClipLen::new(seconds).ok_or_else(|| TrainError::RunFile {
                    path: "run file".to_owned(),
                    problem: format!("`data.clip_length` is {seconds}, expected seconds above 0"),
                    hint: None,
                })?))
            }
            (None, true) => Some(RowTime::SpanDuration),
            (None, false) => None,
            (Some(_), true) => {
                return Err(TrainError::RunFile {
                    path: "run file".to_owned(),
                    problem: "`data.clip_length` and `data.rows_span_duration` contradict each other".to_owned(),
                    hint: Some("state one of them".into()),
                });
            }
        };
        let options = OpenOptions {
            stream: data.stream.clone(),
            row_time,
            durations: Arc::new(durations),
            ..OpenOptions::default()
        };
        let source = open(&data.features(), &options)?;
        source.origin(&data.stream)?;
        if let Some(subtitles) = &data.subtitles {
            source.origin(subtitles)?;
        }
        Ok(Self {
            source,
            stream: data.stream.clone(),
            subtitles: data.subtitles.clone(),
            normalise: Normalise::None,
            resample: Resample::Cut { rows: usize::MAX },
            variant: None,
            kept: Mutex::default(),
            bytes: AtomicUsize::new(0),
        })
    }

    /// The same features for a model that wants them `normalised` and `resampled`.
    pub(crate) fn prepared(mut self, normalise: Normalise, resample: Resample) -> Self {
        (self.normalise, self.resample) = (normalise, resample);
        self
    }

    /// The same features, shuffled or zeroed.
    pub(crate) fn varied(mut self, variant: Option<FeatureVariant>) -> Self {
        self.variant = variant;
        self
    }

    /// Widths of a clip's features and of its subtitle features, 0 when there are none.
    pub(crate) fn widths(&self) -> Result<(usize, usize)> {
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
        Ok((width(&self.stream)?, self.subtitles.as_deref().map_or(Ok(0), width)?))
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
        let bytes =
            4 * (clips.visual.data().len() + clips.subtitle.as_ref().map_or(0, |subtitle| subtitle.data().len()));
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) < KEPT {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&clips));
        }
        Ok(clips)
    }

    fn prepare(&self, video: &VideoId, window: Window) -> Result<Clips> {
        let whole = self.source.get(video, &self.stream)?;
        let clip = self.source.clip_len(video, &self.stream, whole.rows())?.seconds();
        let whole = match self.variant {
            Some(variant) => variant.of(&whole, video, VARIANT_SEED),
            None => whole,
        };
        let visual = cut(&whole, window);
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
                Some(self.resample.apply(&self.normalise.apply(aligned)))
            }
        };
        Ok(Clips {
            visual: self.resample.apply(&self.normalise.apply(visual)),
            subtitle,
            start: window.first as f64 * clip,
            covered: seen as f64 * clip,
        })
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
