//! Features in other people's layouts, behind the same door as our own.

use std::collections::HashMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, VideoId};
use cuemark_formats::{Budget, Meter, Source};

use crate::layouts::{self, Arrays};
use crate::missing::near;
use crate::source::{FeatureSource, Origin, VISUAL, no_stream};
use crate::{FeatureError, FeatureStore, Features, Layout, Result, RowTime};

/// How long each video lasts, in **seconds**.
pub type Durations = HashMap<VideoId, f64>;

/// What a path alone does not tell. Everything but `layout` and `largest` concerns layouts that are not ours.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The layout; detected when `None`.
    pub layout: Option<Layout>,
    /// What the stream shall be called: other layouts hold one, without a name. Default: `visual`
    pub stream: String,
    /// What one row stands for; `None` when nobody said, and then asking for it is an error.
    pub row_time: Option<RowTime>,
    /// The durations that rows span under [`RowTime::SpanDuration`].
    pub durations: Arc<Durations>,
    /// What file names carry in front of the video; DiDeMo's `fc7_subsample5_fps25_` is known when `None`.
    pub prefix: Option<String>,
    /// The array to read where a file holds several; the published names are looked for when `None`.
    pub array: Option<String>,
    /// The length in frames of the windows to read (`npy-windows`).
    pub window: Option<usize>,
    /// The most bytes that the rows of one video may take in memory. Default: 1 GiB
    pub largest: u64,
    /// The most bytes that reading one file may take, whatever for. Default: the process's ([`Budget::of_process`])
    pub budget: Budget,
}

impl OpenOptions {
    /// Counts what one reading takes.
    pub(crate) fn meter(&self) -> Meter {
        Meter::new(self.budget)
    }

    /// A text file that is read within the budget.
    pub(crate) fn source(&self, path: impl Into<Utf8PathBuf>) -> Source {
        Source::new(path).with_budget(self.budget)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            layout: None,
            stream: VISUAL.to_owned(),
            row_time: None,
            durations: Arc::default(),
            prefix: None,
            array: None,
            window: None,
            largest: 1 << 30,
            budget: Budget::default(),
        }
    }
}

/// Opens features of any layout.
///
/// # Errors
/// When nothing is there, the layout cannot be told, this build cannot read it, or the files contradict themselves.
pub fn open(path: &Utf8Path, options: &OpenOptions) -> Result<Arc<dyn FeatureSource>> {
    let layout = match options.layout {
        Some(layout) => layout,
        None => layouts::detect(path)?,
    };
    if layout == Layout::Safetensors {
        return Ok(Arc::new(FeatureStore::open(path)?));
    }
    let arrays = layouts::open(path, layout, options)?;
    Ok(Arc::new(ForeignStore { path: path.to_owned(), layout, arrays, options: options.clone() }))
}

/// One stream in a layout that is not ours.
#[derive(Debug)]
struct ForeignStore {
    path: Utf8PathBuf,
    layout: Layout,
    arrays: Box<dyn Arrays>,
    options: OpenOptions,
}

impl ForeignStore {
    fn check_stream(&self, stream: &str) -> Result<()> {
        if stream == self.options.stream {
            return Ok(());
        }
        Err(no_stream(&self.path, stream, &[&self.options.stream]))
    }
}

impl FeatureSource for ForeignStore {
    fn streams(&self) -> Vec<&str> {
        vec![&self.options.stream]
    }

    fn origin(&self, stream: &str) -> Result<Origin<'_>> {
        self.check_stream(stream)?;
        Ok(Origin { path: &self.path, layout: self.layout, recipe: None, row_time: self.options.row_time })
    }

    fn videos(&self, stream: &str) -> Vec<&VideoId> {
        if stream == self.options.stream { self.arrays.videos().iter().collect() } else { Vec::new() }
    }

    fn read(&self, video: &VideoId, stream: &str) -> Result<Features> {
        self.check_stream(stream)?;
        if self.arrays.videos().binary_search(video).is_err() {
            return Err(FeatureError::Missing {
                folder: self.path.clone(),
                video: video.clone(),
                stream: stream.to_owned(),
                near: near(video, &self.videos(stream)),
            });
        }
        self.arrays.read(video)
    }

    fn clip_len(&self, video: &VideoId, stream: &str, rows: usize) -> Result<ClipLen> {
        self.check_stream(stream)?;
        let unstated = || FeatureError::NoClipLen { path: self.path.clone(), stream: stream.to_owned() };
        match self.options.row_time.ok_or_else(unstated)? {
            RowTime::Clip(clip_len) => Ok(clip_len),
            RowTime::SpanDuration => {
                let duration = self.options.durations.get(video);
                let duration = duration.ok_or_else(|| FeatureError::NoDuration { video: video.clone() })?;
                ClipLen::new(duration / rows as f64).ok_or_else(|| FeatureError::Unfit {
                    video: video.clone(),
                    problem: format!("{rows} rows cannot span {duration} seconds"),
                })
            }
        }
    }
}
