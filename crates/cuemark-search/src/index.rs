//! A collection of videos that can be searched: an engine, an encoder, and the rules for keeping them in step.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use cuemark_core::{Moment, Progress, VideoId};
use cuemark_formats::Overwrite;
use cuemark_media::Stamp;
use lru::LruCache;

use crate::answer::{Background, Counted, Meant, Moments, Usual};
use crate::encoder::AbsentEncoder;
use crate::engine::{self, Settling};
use crate::manifest::LAYOUT;
use crate::recalibrate::CurrentCurve;
use crate::together::Together;
use crate::words::Lines;
use crate::{
    Calibration, Compacted, Embedding, Encoder, Engine, EngineUrl, Fault, Manifest, Result, SearchError, VideoState,
};

/// Sentences whose embeddings are remembered, those that were asked for last.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("more than none");

/// A collection of videos that can be searched. Safe to share between threads.
pub struct Index {
    engine: Box<dyn Engine>,
    encoder: Arc<dyn Encoder>,
    manifest: Manifest,
    /// The curve as the manifest's file has it by now.
    curve: CurrentCurve,
    sentences: Mutex<LruCache<String, Embedding>>,
    /// New ones on their way through the encoder.
    encoding: Together,
    /// What questions score against by chance, and what that was taken from.
    background: Mutex<Option<(Sampled, Arc<Background>)>>,
    /// What moments have in common, and how many there were then.
    usual: Mutex<Option<(Moments, Arc<Usual>)>>,
    /// What lines mean, and how many there were then.
    meant: Mutex<Option<(Counted, Arc<Meant>)>>,
    /// Where lines come from that are added.
    sources: Vec<Box<dyn Lines>>,
}

/// What a look at everything found.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verified {
    /// What is not as it was written.
    pub faults: Vec<Fault>,
    /// Videos whose file has gone and that are not marked so yet.
    pub vanished: Vec<VideoId>,
    /// Videos whose file has come back and that are still marked as gone.
    pub returned: Vec<VideoId>,
    /// Videos whose file has changed since it was indexed.
    pub changed: Vec<VideoId>,
}

/// What to do about videos whose file has gone or come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Nothing: the index is only read.
    Look,
    /// Mark them, so that a video without a file is not found.
    Mark,
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
            log: None,
            kept: BTreeMap::new(),
        };
        let (engine, manifest) = engine::create(url, manifest, &encoder.keeps()?, overwrite)?;
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
        let sentences = Mutex::new(LruCache::new(REMEMBERED));
        let (background, usual, meant) = (Mutex::default(), Mutex::default(), Mutex::default());
        let sources = Vec::new();
        let curve = CurrentCurve::of(&engine.url(), &manifest);
        let encoding = Together::default();
        Self { engine, encoder, manifest, curve, sentences, encoding, background, usual, meant, sources }
    }

    /// Opens an index to look after it: nothing of its encoder is read, so it can be described, verified, compacted and taken
    /// from, and asked for words, but not for what is seen.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn open_without_encoder(url: &EngineUrl) -> Result<Self> {
        let manifest = Self::manifest_of(url)?;
        let encoder = Arc::new(AbsentEncoder::of(&manifest));
        Ok(Self::of(engine::open(url)?, encoder, manifest))
    }

    /// The same index, which reads the lines of films that are added from `sources`: of each track from the first that has
    /// something to read a film from.
    #[must_use]
    pub fn reading(mut self, sources: Vec<Box<dyn Lines>>) -> Self {
        self.sources = sources;
        self
    }

    pub(crate) fn meant_cell(&self) -> &Mutex<Option<(Counted, Arc<Meant>)>> {
        &self.meant
    }

    pub(crate) fn usual_cell(&self) -> &Mutex<Option<(Moments, Arc<Usual>)>> {
        &self.usual
    }

    pub(crate) fn sources(&self) -> &[Box<dyn Lines>] {
        &self.sources
    }

    /// Where the moments are.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// What made them.
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// What it was about when it was opened; [`Index::calibration`] may be another by now.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// From scores to probabilities, as somebody may have fitted it anew since the index was opened.
    pub fn calibration(&self) -> Calibration {
        self.curve.now()
    }

    /// Gives back the room of removed and replaced videos; see [`Engine::compact`].
    ///
    /// # Errors
    /// When the index cannot be written, or its engine leaves this to somebody else.
    pub fn compact(&self, progress: &Progress) -> Result<Compacted> {
        self.engine.compact(progress)
    }

    /// Brings what makes search fast up to date.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn settle(&self, how: Settling, progress: &Progress) -> Result<()> {
        self.engine.settle(how, progress)
    }

    /// Looks for the files of all videos, and marks those that have gone or come back when told to.
    ///
    /// # Errors
    /// When the index cannot be read, or is to be marked and cannot be written.
    pub fn look_for_files(&self, marking: Marking) -> Result<Verified> {
        let mut verified = Verified::default();
        for entry in self.engine.videos()? {
            let Some(path) = &entry.path else { continue };
            let state = if path.is_file() { VideoState::Present } else { VideoState::Vanished };
            if state == entry.state {
                if state == VideoState::Present && Stamp::of(path)? != entry.stamp() {
                    verified.changed.push(entry.id);
                }
                continue;
            }
            if marking == Marking::Mark {
                self.engine.note(&entry.id, state, &entry.tags)?;
            }
            match state {
                VideoState::Vanished => verified.vanished.push(entry.id),
                VideoState::Present => verified.returned.push(entry.id),
            }
        }
        Ok(verified)
    }

    /// The embedding of a sentence, remembered.
    pub(crate) fn sentence(&self, text: &str) -> Result<Embedding> {
        self.sentences(&[text])?.pop().ok_or_else(|| SearchError::Question {
            problem: "the question is empty".to_owned(),
            advice: "ask in a sentence".into(),
        })
    }

    /// The embeddings of sentences in their order, remembered; those that are new are encoded together, and with those of others
    /// who ask at the same time.
    pub(crate) fn sentences(&self, texts: &[&str]) -> Result<Vec<Embedding>> {
        let remembered = || self.sentences.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |text: &&str| remembered().get(*text).cloned();
        let found: Vec<Option<Embedding>> = texts.iter().map(known).collect();
        let new: Vec<&str> =
            texts.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(text, _)| *text).collect();
        let encoded = if new.is_empty() { Vec::new() } else { self.encoding.encode(&*self.encoder, &new)? };
        for (text, embedding) in new.iter().zip(&encoded) {
            remembered().put((*text).to_owned(), embedding.clone());
        }
        let mut encoded = encoded.into_iter();
        Ok(found.into_iter().filter_map(|known| known.or_else(|| encoded.next())).collect())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;
    use crate::EmbeddedVideo;

    /// Says the length of a sentence, and counts the sentences that it was asked for.
    struct Counting(Arc<AtomicUsize>);

    impl Encoder for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn width(&self) -> usize {
            2
        }

        fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
            self.0.fetch_add(sentences.len(), Ordering::SeqCst);
            Ok(sentences.iter().filter_map(|text| Embedding::unit(vec![1.0, text.len() as f32])).collect())
        }

        fn video(&self, _: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
            Ok(EmbeddedVideo { duration: 0.0, moments: Vec::new(), partial: None })
        }
    }

    #[test]
    fn a_question_that_is_asked_all_the_time_stays_known_while_thousands_pass() {
        let folder = tempfile::tempdir().unwrap();
        let url = EngineUrl::File(Utf8PathBuf::from_path_buf(folder.path().join("index")).unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let index = Index::create(&url, Box::new(Counting(Arc::clone(&asked))), Overwrite::Never).unwrap();
        let others = 3 * REMEMBERED.get();
        for other in 0..others {
            let found = index.sentences(&["a red ball", &format!("the {other}th")]).unwrap();
            assert_eq!(found[0], index.encoder.sentences(&["a red ball"]).unwrap()[0]);
        }
        // Each other once, the one once, and once in each turn by this test.
        assert_eq!(asked.load(Ordering::SeqCst), others + 1 + others);
        assert_eq!(index.sentences.lock().unwrap().len(), REMEMBERED.get(), "no more are kept");
    }
}
