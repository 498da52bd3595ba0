//! What keeps the moments and finds the nearest: one trait, chosen by address.

mod ahead;
mod compact;
mod create;
pub mod disk;
mod embedded;
mod evenly;
mod following;
mod graph;
pub(crate) mod limits;
mod log;
mod looking;
mod mapped;
#[cfg(feature = "milvus")]
mod milvus;
mod salvage;
mod snapshot;
mod url;
mod walk;
#[cfg(not(feature = "milvus"))]
mod without_milvus;
mod writer;

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Advice, Line, Progress, Span, Track, VideoId};
use cuemark_formats::Overwrite;
use serde::Serialize;

#[cfg(feature = "milvus")]
pub use self::milvus::Milvus;
pub use embedded::Embedded;
pub(crate) use evenly::evenly;
pub use salvage::{Lost, Salvaged, salvage, salvage_on};
pub use url::{CollectionLayout, EngineUrl, VectorIndex};

use crate::words::{Passages, WordsAsked};
use crate::{Embedding, Filter, KeptFile, Manifest, Result, SearchError, VideoEntry, VideoState, manifest};
use disk::{Disk, RealDisk};
#[cfg(not(feature = "milvus"))]
use without_milvus::Milvus;

/// The log's name in the folder.
const LOG: &str = "moments.log";
/// The name of the file that a writer locks.
const LOCK: &str = "lock";

/// Refuses an address where an index is already, unless it may be replaced.
pub(crate) fn check_free(url: &EngineUrl, overwrite: Overwrite) -> Result<()> {
    match url {
        EngineUrl::File(folder) => {
            overwrite.check(&folder.join(manifest::FILE))?;
            if overwrite == Overwrite::Never { create::check_holds_nothing(&RealDisk, folder) } else { Ok(()) }
        }
        EngineUrl::Milvus { .. } => Milvus::check_free(url, overwrite),
    }
}

/// Makes an empty engine at `url`, with its manifest, which is returned as it was written.
///
/// Where the engine has a folder, `files` of the encoder are kept in it.
pub(crate) fn create(
    url: &EngineUrl,
    manifest: Manifest,
    files: &[KeptFile],
    overwrite: Overwrite,
) -> Result<(Box<dyn Engine>, Manifest)> {
    Ok(match url {
        EngineUrl::File(folder) => {
            let (engine, manifest) = Embedded::create_keeping(Arc::new(RealDisk), folder, &manifest, files, overwrite)?;
            (Box::new(engine), manifest)
        }
        EngineUrl::Milvus { .. } => (Box::new(Milvus::create(url, &manifest, overwrite)?), manifest),
    })
}

/// Opens the engine at `url`.
pub(crate) fn open(url: &EngineUrl) -> Result<Box<dyn Engine>> {
    Ok(match url {
        EngineUrl::File(folder) => Box::new(Embedded::open(folder)?),
        EngineUrl::Milvus { .. } => Box::new(Milvus::open(url)?),
    })
}

/// What the index at `url` is about.
pub(crate) fn manifest(url: &EngineUrl) -> Result<Manifest> {
    match url {
        EngineUrl::File(folder) => Manifest::read(folder),
        EngineUrl::Milvus { .. } => Milvus::manifest(url),
    }
}

/// Changes what the manifest of the index at `url` says; the changed one is returned as it was written.
pub(crate) fn change_manifest(url: &EngineUrl, change: impl FnOnce(&mut Manifest)) -> Result<Manifest> {
    match url {
        EngineUrl::File(folder) => change_manifest_on(&RealDisk, folder, change),
        EngineUrl::Milvus { .. } => Err(SearchError::Server {
            url: url.to_string(),
            problem: "the manifest of a collection is written when the collection is made".to_owned(),
            advice: "make the collection anew".into(),
        }),
    }
}

/// Changes what the index in `folder` says about itself, as one writer among others: all of the change is there or none.
///
/// # Errors
/// When somebody is writing the index, or it cannot be written.
pub fn change_manifest_on(disk: &dyn Disk, folder: &Utf8Path, change: impl FnOnce(&mut Manifest)) -> Result<Manifest> {
    let _lock = writer::take_lock(disk, folder)?;
    let mut manifest = Manifest::read_on(disk, folder)?;
    change(&mut manifest);
    manifest.write_on(disk, folder)?;
    Ok(manifest)
}

/// A place that keeps moments and finds those nearest to a vector. Safe to share between threads.
pub trait Engine: Send + Sync {
    /// Its address.
    fn url(&self) -> EngineUrl;

    /// Numbers per embedding.
    fn width(&self) -> usize;

    /// Every video, vanished ones too, sorted by name.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn videos(&self) -> Result<Vec<VideoEntry>>;

    /// One video; `None` when it is not there.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn video(&self, id: &VideoId) -> Result<Option<VideoEntry>>;

    /// Adds a video with its moments, or puts it in the place of one with the same name.
    ///
    /// When this returns, the video is safe: it is found after the process was killed at any later point.
    ///
    /// # Errors
    /// When somebody else is writing, an embedding has the wrong width, or the engine cannot be written.
    fn put(&self, entry: &VideoEntry, moments: &[IndexedMoment]) -> Result<()>;

    /// Adds several videos in order, as [`Engine::put`] would, and waits for the disk once: all of them are safe when this
    /// returns. Killed before, an engine has the first so many of them.
    ///
    /// # Errors
    /// As [`Engine::put`].
    fn put_all(&self, videos: &[(VideoEntry, Vec<IndexedMoment>)]) -> Result<()> {
        videos.iter().try_for_each(|(entry, moments)| self.put(entry, moments))
    }

    /// Whether it keeps what is said and written, so that [`Engine::passages`] finds it. Default: it does not
    fn keeps_words(&self) -> bool {
        false
    }

    /// As [`Engine::put`], with the lines that are said and written in the video: they are safe, found and gone together with
    /// its moments.
    ///
    /// # Errors
    /// As [`Engine::put`], and when there are lines and the engine keeps none.
    fn put_with_words(&self, entry: &VideoEntry, moments: &[IndexedMoment], lines: &[(Track, Line)]) -> Result<()> {
        if lines.is_empty() { self.put(entry, moments) } else { Err(no_words(&self.url())) }
    }

    /// Changes everything that is known about a video, and its words where `lines` has some to put in their place, and keeps its
    /// moments; `false` when it is not there.
    ///
    /// # Errors
    /// As [`Engine::put_with_words`].
    fn amend(&self, entry: &VideoEntry, lines: Option<&[(Track, Line)]>) -> Result<bool> {
        let Some(moments) = self.moments(&entry.id)? else { return Ok(false) };
        self.put_with_words(entry, &moments, lines.unwrap_or_default())?;
        Ok(true)
    }

    /// The lines of one video, those that are said first, each track in the order of time; `None` when the video is not there.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn lines(&self, id: &VideoId) -> Result<Option<Vec<(Track, Line)>>> {
        Ok(self.video(id)?.map(|_| Vec::new()))
    }

    /// Stretches in which words are said or written, the best first.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn passages(&self, _ask: &WordsAsked, _filter: &Filter) -> Result<Passages> {
        Ok(Passages::default())
    }

    /// Changes what is known about a video and keeps its moments; `false` when it is not there.
    ///
    /// # Errors
    /// As [`Engine::put`].
    fn note(&self, id: &VideoId, state: VideoState, tags: &[String]) -> Result<bool>;

    /// Takes a video out; `false` when it was not there.
    ///
    /// # Errors
    /// As [`Engine::put`].
    fn remove(&self, id: &VideoId) -> Result<bool>;

    /// Brings what makes search fast up to date with what was added. Search is right before, too, only slower.
    ///
    /// # Errors
    /// As [`Engine::put`].
    fn settle(&self, how: Settling, progress: &Progress) -> Result<()>;

    /// Gives back the room of removed and replaced videos, and derives anew what makes search fast. The steps of `progress` are
    /// videos, then moments.
    ///
    /// # Errors
    /// As [`Engine::put`], and where the engine leaves this to somebody else.
    fn compact(&self, progress: &Progress) -> Result<Compacted>;

    /// The moments with the largest product with `query`, best first; equal scores in the order of video name, start, end.
    ///
    /// # Errors
    /// When `query` has the wrong width or the engine cannot be read.
    fn nearest(&self, query: &Embedding, ask: &Nearest) -> Result<Vec<Hit>>;

    /// Every moment of one video with its embedding, in the order they were put; `None` when the video is not there.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn moments(&self, id: &VideoId) -> Result<Option<Vec<IndexedMoment>>>;

    /// Scores of every moment of one video: the cheaper half of [`Engine::moments`].
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn scores(&self, id: &VideoId, query: &Embedding) -> Result<Option<Vec<(Span, f32)>>> {
        let moments = self.moments(id)?;
        let scored = |moment: IndexedMoment| (moment.span, moment.embedding.cosine(query));
        Ok(moments.map(|moments| moments.into_iter().map(scored).collect()))
    }

    /// The embedding of a moment that was found; `None` when it is not there any more.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn embedding(&self, hit: &Hit) -> Result<Option<Embedding>> {
        let Some(mut moments) = self.moments(&hit.video)? else { return Ok(None) };
        let place = match hit.place {
            Some(place) => {
                Some(place).filter(|place| moments.get(*place).is_some_and(|moment| moment.span == hit.span))
            }
            None => moments.iter().position(|moment| moment.span == hit.span),
        };
        Ok(place.map(|place| moments.swap_remove(place).embedding))
    }

    /// Up to `count` moments spread evenly over those that can be found: the same ones every time.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn sample(&self, count: usize) -> Result<Vec<Embedding>>;

    /// What is there.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn status(&self) -> Result<Status>;

    /// Reads everything and lists what is not as it was written. Writes nothing and waits for nobody.
    ///
    /// # Errors
    /// When the engine cannot be read at all.
    fn verify(&self, progress: &Progress) -> Result<Vec<Fault>>;
}

/// A moment with its embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedMoment {
    /// Where it lies, in **seconds**.
    pub span: Span,
    /// Its place in the encoder's space.
    pub embedding: Embedding,
}

/// What is asked of an engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nearest {
    /// How many moments, at most.
    pub count: usize,
    /// Where to look.
    pub filter: Filter,
    /// How hard to look.
    pub effort: Effort,
}

/// How hard to look: HNSW's `ef` (`efSearch`), or no graph at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Through the graph, which may miss a few. Default.
    #[default]
    Approximate,
    /// The same, keeping so many candidates on the way (`ef`): more is slower and misses less.
    Expansion(usize),
    /// At every moment.
    Exact,
}

/// When the HNSW graph is built: only when it is worth it, or over everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settling {
    /// When enough was added since the last time.
    WhenWorthIt,
    /// Always, up to the last moment.
    Fully,
    /// From scratch, throwing away what was derived before.
    Anew,
}

/// A moment that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its video.
    pub video: VideoId,
    /// Where it lies, in **seconds**.
    pub span: Span,
    /// The product with the query, a cosine.
    pub score: f32,
    /// Which of its video's moments it is, in the order they were put, where that is known.
    pub(crate) place: Option<usize>,
}

impl Hit {
    /// A moment that was found without it being known which of its video's it is.
    pub fn new(video: VideoId, span: Span, score: f32) -> Self {
        Self { video, span, score, place: None }
    }
}

/// What is in an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Videos that can be found.
    pub videos: usize,
    /// Videos whose file was gone when last looked for.
    pub vanished: usize,
    /// Moments that can be found.
    pub moments: usize,
    /// Lines that are said or written in these videos.
    pub lines: usize,
    /// Moments of removed or replaced videos that still take room.
    pub dead: usize,
    /// Moments that the graph covers; the others are looked at one by one.
    pub in_graph: usize,
    /// Places where the index is known to be damaged, as far as opening it shows; [`Engine::verify`] looks at everything.
    pub damaged: usize,
    /// Bytes on disk; `None` where the engine does not say.
    pub bytes: Option<u64>,
    /// Bytes of those that [`Engine::compact`] gives back at least; `None` where the engine does not say.
    pub waste: Option<u64>,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Bytes of the log that were given back.
    pub freed: u64,
    /// Bytes of the graph that was made with it; `None` when none was.
    pub graph: Option<u64>,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file, or the part of a database.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// What an engine says that keeps no words and gets some.
pub(crate) fn no_words(url: &EngineUrl) -> SearchError {
    SearchError::Question {
        problem: format!("`{url}` keeps moments only: what is said and written is not found there"),
        advice: Advice::say("use an index in a folder, or ask for what is seen"),
    }
}

/// Sorts hits as [`Engine::nearest`] promises and keeps the best `count`.
pub(crate) fn rank(hits: &mut Vec<Hit>, count: usize) {
    hits.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.video.cmp(&b.video))
            .then_with(|| a.span.start().total_cmp(&b.span.start()))
            .then_with(|| a.span.end().total_cmp(&b.span.end()))
    });
    hits.truncate(count);
}
