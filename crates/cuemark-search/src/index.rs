//! A collection of videos that can be searched: an engine, an encoder, and the rules for keeping them in step.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Moment, VideoId};
use cuemark_formats::Overwrite;
use rustc_hash::FxHashMap;

use crate::answer::Background;
use crate::engine::{self, Settling};
use crate::manifest::LAYOUT;
use crate::video::Stamp;
use crate::{
    Calibration, Embedding, Encoder, Engine, EngineUrl, Fault, Manifest, Result, SearchError, VideoEntry, VideoState,
    media,
};

/// Sentences whose embeddings are remembered.
const REMEMBERED: usize = 4096;

/// A collection of videos that can be searched. Safe to share between threads.
pub struct Index {
    engine: Box<dyn Engine>,
    encoder: Arc<dyn Encoder>,
    manifest: Manifest,
    sentences: Mutex<FxHashMap<String, Embedding>>,
    /// What questions score against by chance, and what that was taken from.
    background: Mutex<Option<(Sampled, Arc<Background>)>>,
}

/// What to add and how.
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// Tags that every added video gets.
    pub tags: Vec<String>,
}

/// What became of one video.
#[derive(Debug)]
pub enum Adding<'a> {
    /// It is new.
    New(&'a VideoEntry),
    /// Its file has changed and it was embedded again.
    Changed(&'a VideoEntry),
    /// It is there already, as it is.
    Unchanged(&'a VideoId),
    /// It could not be added.
    Failed {
        /// What was tried.
        what: &'a str,
        /// Why not.
        error: SearchError,
    },
}

/// What was added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Added {
    /// New videos.
    pub new: usize,
    /// Videos whose file had changed.
    pub changed: usize,
    /// Videos that were there already, as they are.
    pub unchanged: usize,
    /// Videos that could not be added.
    pub failed: usize,
    /// Moments that were added.
    pub moments: usize,
}

/// What a look at everything found.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verified {
    /// What is not as it was written.
    pub faults: Vec<Fault>,
    /// Videos whose file has gone since the last look; they are marked now.
    pub vanished: Vec<VideoId>,
    /// Videos whose file has come back; they are marked now.
    pub returned: Vec<VideoId>,
    /// Videos whose file has changed since it was indexed.
    pub changed: Vec<VideoId>,
}

impl Index {
    /// Makes an empty index for the embeddings of `encoder`, calibrated where the encoder knows how.
    ///
    /// # Errors
    /// When there is one already and it may not be replaced, or it cannot be written.
    pub fn create(url: &EngineUrl, encoder: Box<dyn Encoder>, overwrite: Overwrite) -> Result<Self> {
        // Before the encoder is asked for its calibration, which takes its time.
        engine::check_free(url, overwrite)?;
        let manifest = Manifest {
            layout: LAYOUT,
            cuemark: env!("CARGO_PKG_VERSION").to_owned(),
            encoder: encoder.name().to_owned(),
            width: encoder.width(),
            calibration: encoder.calibration()?.unwrap_or_default(),
        };
        let engine = engine::create(url, &manifest, overwrite)?;
        Ok(Self::of(engine, encoder.into(), manifest))
    }

    /// Opens an index with an encoder that [`Index::manifest_of`] named.
    ///
    /// # Errors
    /// When there is none, it is damaged, or the encoder's embeddings have another width.
    pub fn open(url: &EngineUrl, encoder: Box<dyn Encoder>) -> Result<Self> {
        let manifest = Self::manifest_of(url)?;
        if manifest.width != encoder.width() {
            return Err(SearchError::Width { expected: manifest.width, found: encoder.width() });
        }
        Ok(Self::of(engine::open(url)?, encoder.into(), manifest))
    }

    /// What the index at `url` is about.
    ///
    /// # Errors
    /// When there is none.
    pub fn manifest_of(url: &EngineUrl) -> Result<Manifest> {
        engine::manifest(url)
    }

    fn of(engine: Box<dyn Engine>, encoder: Arc<dyn Encoder>, manifest: Manifest) -> Self {
        Self { engine, encoder, manifest, sentences: Mutex::default(), background: Mutex::default() }
    }

    /// Where the moments are.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// What made them.
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// What it is about.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn calibration(&self) -> &Calibration {
        &self.manifest.calibration
    }

    /// Adds video files, and every video file below folders; a video known already is embedded again only when its file
    /// has changed. Each video is safe once `told` hears of it; `stop` is asked between videos.
    ///
    /// # Errors
    /// When the index cannot be written. A video that cannot be decoded is told of and left out.
    pub fn add_files(
        &self,
        paths: &[Utf8PathBuf],
        options: &AddOptions,
        told: &mut dyn FnMut(usize, usize, Adding),
        stop: &dyn Fn() -> bool,
    ) -> Result<Added> {
        let files = files_below(paths)?;
        let mut known: FxHashMap<VideoId, VideoEntry> =
            self.engine.videos()?.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        let mut added = Added::default();
        for (number, file) in files.iter().enumerate() {
            if stop() {
                break;
            }
            match self.add_file(file, options, &mut known)? {
                AddedOne::Put { entry, became, moments } => {
                    let adding = match became {
                        Became::New => Adding::New(&entry),
                        Became::Changed => Adding::Changed(&entry),
                        Became::Unchanged => Adding::Unchanged(&entry.id),
                    };
                    added.count(&adding, moments);
                    told(number + 1, files.len(), adding);
                }
                AddedOne::Failed(error) => {
                    added.failed += 1;
                    told(number + 1, files.len(), Adding::Failed { what: file.as_str(), error });
                }
            }
        }
        Ok(added)
    }

    fn add_file(
        &self,
        file: &Utf8Path,
        options: &AddOptions,
        known: &mut FxHashMap<VideoId, VideoEntry>,
    ) -> Result<AddedOne> {
        let path = match file.canonicalize_utf8() {
            Ok(path) => path,
            Err(error) => return Ok(AddedOne::Failed(SearchError::io("open", file)(error))),
        };
        let id = free_id(&path, known);
        let stamp = match Stamp::of(&path) {
            Ok(stamp) => stamp,
            Err(error) => return Ok(AddedOne::Failed(error)),
        };
        let earlier = known.get(&id);
        let mut tags: BTreeSet<String> = options.tags.iter().cloned().collect();
        tags.extend(earlier.into_iter().flat_map(|entry| entry.tags.iter().cloned()));
        let tags: Vec<String> = tags.into_iter().collect();
        if let Some(earlier) = earlier.filter(|entry| entry.stamp() == stamp && entry.path.as_ref() == Some(&path)) {
            let mut entry = earlier.clone();
            if entry.tags != tags || entry.state != VideoState::Present {
                (entry.tags, entry.state) = (tags, VideoState::Present);
                self.engine.note(&id, entry.state, &entry.tags)?;
                known.insert(id, entry.clone());
            }
            return Ok(AddedOne::Put { entry, became: Became::Unchanged, moments: 0 });
        }
        let became = if earlier.is_some() { Became::Changed } else { Became::New };
        let embedded = match self.encoder.video(&id, Some(&path)) {
            Ok(embedded) => embedded,
            Err(error) => return Ok(AddedOne::Failed(error)),
        };
        let entry = VideoEntry {
            id: id.clone(),
            path: Some(path),
            duration: embedded.duration,
            bytes: stamp.bytes,
            modified: stamp.modified,
            tags,
            state: VideoState::Present,
        };
        self.engine.put(&entry, &embedded.moments)?;
        known.insert(id, entry.clone());
        Ok(AddedOne::Put { entry, became, moments: embedded.moments.len() })
    }

    /// Adds videos by their stored features, without files: they can be found but not played.
    ///
    /// # Errors
    /// As [`Index::add_files`].
    pub fn add_stored(
        &self,
        videos: &[VideoId],
        options: &AddOptions,
        told: &mut dyn FnMut(usize, usize, Adding),
        stop: &dyn Fn() -> bool,
    ) -> Result<Added> {
        let mut added = Added::default();
        for (number, id) in videos.iter().enumerate() {
            if stop() {
                break;
            }
            if self.engine.video(id)?.is_some() {
                let adding = Adding::Unchanged(id);
                added.count(&adding, 0);
                told(number + 1, videos.len(), adding);
                continue;
            }
            match self.encoder.video(id, None) {
                Ok(embedded) => {
                    let tags = options.tags.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
                    let entry = VideoEntry {
                        id: id.clone(),
                        path: None,
                        duration: embedded.duration,
                        bytes: 0,
                        modified: 0,
                        tags,
                        state: VideoState::Present,
                    };
                    self.engine.put(&entry, &embedded.moments)?;
                    let adding = Adding::New(&entry);
                    added.count(&adding, embedded.moments.len());
                    told(number + 1, videos.len(), adding);
                }
                Err(error) => {
                    added.failed += 1;
                    told(number + 1, videos.len(), Adding::Failed { what: id.as_str(), error });
                }
            }
        }
        Ok(added)
    }

    /// Brings what makes search fast up to date.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn settle(&self, how: Settling, progress: &mut dyn FnMut(usize, usize)) -> Result<()> {
        self.engine.settle(how, progress)
    }

    /// Marks videos whose file has gone, and those whose file has come back.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn look_for_files(&self) -> Result<Verified> {
        let mut verified = Verified::default();
        for entry in self.engine.videos()? {
            let Some(path) = &entry.path else { continue };
            let there = path.is_file();
            match (there, entry.state) {
                (false, VideoState::Present) => {
                    self.engine.note(&entry.id, VideoState::Vanished, &entry.tags)?;
                    verified.vanished.push(entry.id);
                }
                (true, VideoState::Vanished) => {
                    self.engine.note(&entry.id, VideoState::Present, &entry.tags)?;
                    verified.returned.push(entry.id);
                }
                (true, VideoState::Present) if Stamp::of(path)? != entry.stamp() => verified.changed.push(entry.id),
                _ => {}
            }
        }
        Ok(verified)
    }

    /// The embedding of a sentence, remembered.
    pub(crate) fn sentence(&self, text: &str) -> Result<Embedding> {
        if let Some(known) = self.sentences.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(known.clone());
        }
        let Some(embedding) = self.encoder.sentences(&[text])?.pop() else {
            return Err(SearchError::Question {
                problem: "the question is empty".to_owned(),
                hint: "ask in a sentence",
            });
        };
        let mut sentences = self.sentences.lock().unwrap_or_else(PoisonError::into_inner);
        if sentences.len() >= REMEMBERED {
            sentences.clear();
        }
        sentences.insert(text.to_owned(), embedding.clone());
        Ok(embedding)
    }

    /// The embedding of the indexed moment that overlaps `moment` most.
    pub(crate) fn embedding_of(&self, moment: &Moment) -> Result<Embedding> {
        let unknown = || SearchError::UnknownVideo { video: moment.video.clone() };
        let moments = self.engine.moments(&moment.video)?.ok_or_else(unknown)?;
        let nearest = moments.into_iter().max_by(|a, b| a.span.iou(moment.span).total_cmp(&b.span.iou(moment.span)));
        nearest.map(|moment| moment.embedding).ok_or_else(unknown)
    }

    /// What questions score against by chance: the encoder's own background, or else a sample of the moments, taken anew when
    /// videos have come or gone.
    pub(crate) fn background(&self) -> Result<Arc<Background>> {
        let mut known = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((Sampled::Once, background)) = known.as_ref() {
            return Ok(Arc::clone(background));
        }
        if let Some(moments) = self.encoder.background() {
            let background = Arc::new(Background::new(moments));
            *known = Some((Sampled::Once, Arc::clone(&background)));
            return Ok(background);
        }
        let sampled = Sampled::Of(self.engine.status()?.videos);
        if let Some((_, background)) = known.as_ref().filter(|(then, _)| *then == sampled) {
            return Ok(Arc::clone(background));
        }
        let background = Arc::new(Background::new(self.engine.sample(Background::SIZE)?));
        *known = Some((sampled, Arc::clone(&background)));
        Ok(background)
    }
}

/// What a background was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampled {
    /// From the encoder: it stays what it is.
    Once,
    /// From an index of so many videos.
    Of(usize),
}

/// What became of one file; errors of the engine are not among it.
enum AddedOne {
    Put { entry: VideoEntry, became: Became, moments: usize },
    Failed(SearchError),
}

enum Became {
    New,
    Changed,
    Unchanged,
}

impl Added {
    fn count(&mut self, adding: &Adding, moments: usize) {
        match adding {
            Adding::New(_) => self.new += 1,
            Adding::Changed(_) => self.changed += 1,
            Adding::Unchanged(_) => self.unchanged += 1,
            Adding::Failed { .. } => self.failed += 1,
        }
        self.moments += moments;
    }
}

/// The file's name without its extension; with a number behind it when another file has that name already.
fn free_id(path: &Utf8Path, known: &FxHashMap<VideoId, VideoEntry>) -> VideoId {
    let stem = path.file_stem().unwrap_or("video");
    let mut id = VideoId::new(stem);
    let mut number = 2;
    while known.get(&id).is_some_and(|entry| entry.path.as_deref() != Some(path)) {
        id = VideoId::new(format!("{stem}-{number}"));
        number += 1;
    }
    id
}

/// Files as given, and every video file below folders, sorted.
fn files_below(paths: &[Utf8PathBuf]) -> Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut below = Vec::new();
            walk(path, 0, &mut below)?;
            below.sort();
            files.extend(below);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Utf8Path, depth: usize, files: &mut Vec<Utf8PathBuf>) -> Result<()> {
    // Deep enough for every collection; a limit, because links can make circles.
    if depth > 16 {
        return Ok(());
    }
    for entry in folder.read_dir_utf8().map_err(SearchError::io("list", folder))? {
        let entry = entry.map_err(SearchError::io("list", folder))?;
        let path = entry.into_path();
        if path.is_dir() {
            walk(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|found| media::EXTENSIONS.contains(&found.to_ascii_lowercase().as_str()))
        {
            files.push(path);
        }
    }
    Ok(())
}
