//! The engine for collections beyond one machine: a Milvus server keeps the moments.
//!
//! Everything about the index lies on the server, so that any machine can search it; `schema.rs` says how. What
//! [`Milvus::put`](Engine::put) has acknowledged is in the server's log and survives its being killed; settling waits until
//! it lies in the server's storage too. Several processes may write at once; the last to put a video wins. What one
//! process writes others see within seconds.
//!
//! A server's graph has no exact mode: on such a collection [`Effort::Exact`](crate::Effort) reads every moment and scores
//! it here. Collections made with `?index=flat` are searched exactly by the server, always.

mod calls;
mod columns;
mod expression;
mod known;
mod reading;
mod schema;
mod wire;
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuemark_core::{Advice, Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use rustc_hash::FxHashMap;

use calls::Fresh;
use known::Known;
use schema::Description;
use wire::Wire;

use super::{
    CollectionLayout, Compacted, Engine, EngineUrl, Fault, Hit, IndexedMoment, Nearest, Settling, Status, VectorIndex,
};
use crate::{Embedding, Manifest, Result, SearchError, VideoEntry, VideoState, dot};

/// The column that is searched.
const EMBEDDING: &str = "embedding";
/// What was written longer ago is in every recent answer.
const JUST_NOW: Duration = Duration::from_secs(6);
/// Videos that share a request, at most: their names stand in a condition.
const PUT_TOGETHER: usize = 100;
/// How far the length of a stored embedding may be from 1: rounding to halves.
const ROUNDING: f32 = 0.01;

/// Moments on a Milvus server.
pub struct Milvus {
    wire: Wire,
    url: EngineUrl,
    collection: String,
    catalogue: String,
    width: usize,
    index: VectorIndex,
    /// The last thing that was written from here: when, and the server's time.
    last_write: Mutex<Option<(Instant, u64)>>,
    /// Whether something was written since the last flush.
    unflushed: AtomicBool,
    known: Mutex<Known>,
}

/// The connection, the collection's name and the catalogue's.
fn reach(url: &EngineUrl) -> Result<(Wire, String, String)> {
    match url {
        EngineUrl::Milvus { host, collection, .. } => {
            let wire = Wire::new(&url.to_string(), host)?;
            Ok((wire, collection.clone(), format!("{collection}_videos")))
        }
        EngineUrl::File(_) => {
            Err(SearchError::Url { url: url.to_string(), problem: "is not on a Milvus server".to_owned() })
        }
    }
}

impl Milvus {
    pub(super) fn check_free(url: &EngineUrl, overwrite: Overwrite) -> Result<()> {
        let (wire, collection, _) = reach(url)?;
        if overwrite == Overwrite::Never && wire.has_collection(&collection)? {
            return Err(SearchError::Server {
                url: url.to_string(),
                problem: "the collection is there already".to_owned(),
                advice: Advice::say("pass ").set("force").and(" to replace it, or choose another name"),
            });
        }
        Ok(())
    }

    /// Makes empty collections for what `manifest` says.
    ///
    /// # Errors
    /// When there is one already and it may not be replaced, or the server cannot be reached.
    pub fn create(url: &EngineUrl, manifest: &Manifest, overwrite: Overwrite) -> Result<Self> {
        Self::check_free(url, overwrite)?;
        let (wire, collection, catalogue) = reach(url)?;
        for name in [&collection, &catalogue] {
            if wire.has_collection(name)? {
                wire.drop_collection(name)?;
            }
        }
        let layout = if let EngineUrl::Milvus { layout, .. } = url { *layout } else { CollectionLayout::default() };
        wire.create_collection(&schema::catalogue(&catalogue), 1)?;
        wire.make_ready(&catalogue, "unused", VectorIndex::Flat)?;
        // The collection with the manifest last: without it there is no index.
        let description = Description { layout, manifest: manifest.clone() };
        wire.create_collection(&schema::moments(&collection, &description), layout.shards)?;
        wire.make_ready(&collection, EMBEDDING, layout.index)?;
        Ok(Self::of(wire, url, collection, catalogue, &description))
    }

    /// Opens the collections at `url`.
    ///
    /// # Errors
    /// When they are not there, or the server cannot be reached.
    pub fn open(url: &EngineUrl) -> Result<Self> {
        let (wire, collection, catalogue) = reach(url)?;
        let description = describe(&wire, url, &collection)?;
        wire.make_ready(&catalogue, "unused", VectorIndex::Flat)?;
        wire.make_ready(&collection, EMBEDDING, description.layout.index)?;
        // Whatever was acknowledged before, by anybody, is there from here on.
        for name in [&catalogue, &collection] {
            wire.count(name, "present == true", Fresh::Now)?;
        }
        Ok(Self::of(wire, url, collection, catalogue, &description))
    }

    /// What the collection at `url` is about.
    ///
    /// # Errors
    /// As [`Milvus::open`].
    pub fn manifest(url: &EngineUrl) -> Result<Manifest> {
        let (wire, collection, _) = reach(url)?;
        Ok(describe(&wire, url, &collection)?.manifest)
    }

    fn of(wire: Wire, url: &EngineUrl, collection: String, catalogue: String, description: &Description) -> Self {
        let mut url = url.clone();
        if let EngineUrl::Milvus { layout, .. } = &mut url {
            *layout = description.layout;
        }
        Self {
            wire,
            url,
            collection,
            catalogue,
            width: description.manifest.width,
            index: description.layout.index,
            last_write: Mutex::default(),
            unflushed: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With everything that was written from here, and what others wrote until seconds ago.
    fn fresh(&self) -> Fresh {
        let last = *self.last_write.lock().unwrap_or_else(PoisonError::into_inner);
        match last.filter(|(when, _)| when.elapsed() < JUST_NOW) {
            Some((_, since)) => Fresh::Since(since),
            None => Fresh::Recent,
        }
    }
}

fn describe(wire: &Wire, url: &EngineUrl, collection: &str) -> Result<Description> {
    let no_index = |problem: String| SearchError::Server {
        url: url.to_string(),
        problem,
        advice: Advice::say("make one with ").run("index create milvus://HOST:PORT/COLLECTION"),
    };
    let Some(text) = wire.description(collection)? else {
        return Err(no_index("there is no such collection".to_owned()));
    };
    let description: Description =
        serde_json::from_str(&text).map_err(|error| no_index(format!("the collection is no index: {error}")))?;
    let manifest = &description.manifest;
    if !manifest.has_known_layout() || manifest.width == 0 || manifest.width > 1 << 15 {
        let problem = format!("layout {} with {} numbers per moment cannot be", manifest.layout, manifest.width);
        return Err(no_index(problem));
    }
    Ok(description)
}

impl Engine for Milvus {
    fn url(&self) -> EngineUrl {
        self.url.clone()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn videos(&self) -> Result<Vec<VideoEntry>> {
        Ok(self.all_rows()?.into_iter().map(|row| row.entry).collect())
    }

    fn video(&self, id: &VideoId) -> Result<Option<VideoEntry>> {
        Ok(self.row(id)?.map(|row| row.entry.clone()))
    }

    fn put(&self, entry: &VideoEntry, moments: &[IndexedMoment]) -> Result<()> {
        self.put_videos(&[(entry, moments)])
    }

    fn put_all(&self, videos: &[(VideoEntry, Vec<IndexedMoment>)]) -> Result<()> {
        // Of two with one name the later counts.
        let mut last = FxHashMap::default();
        for (number, (entry, _)) in videos.iter().enumerate() {
            last.insert(&entry.id, number);
        }
        let named = videos.iter().enumerate().filter(|(number, (entry, _))| last[&entry.id] == *number);
        let named: Vec<writing::Video> = named.map(|(_, (entry, moments))| (entry, moments.as_slice())).collect();
        named.chunks(PUT_TOGETHER).try_for_each(|videos| self.put_videos(videos))
    }

    /// A server filters by what stands beside each moment, so the video is put again.
    fn note(&self, id: &VideoId, state: VideoState, tags: &[String]) -> Result<bool> {
        let (Some(entry), Some(moments)) = (self.video(id)?, self.moments(id)?) else { return Ok(false) };
        self.put_videos(&[(&VideoEntry { state, tags: tags.to_vec(), ..entry }, &moments)])?;
        Ok(true)
    }

    fn remove(&self, id: &VideoId) -> Result<bool> {
        if self.row(id)?.is_none() {
            return Ok(false);
        }
        self.remove_video(id)?;
        Ok(true)
    }

    /// Flushes what was written; `Fully` also waits until the server's index covers it, `Anew` has the index made again and
    /// removes what writers that died left behind.
    fn settle(&self, how: Settling, progress: &Progress) -> Result<()> {
        if how == Settling::Anew {
            self.sweep()?;
            self.wire.drop_index(&self.collection, EMBEDDING)?;
            self.wire.make_ready(&self.collection, EMBEDDING, self.index)?;
        }
        if self.unflushed.swap(false, Ordering::AcqRel)
            && let Err(error) = self.wire.flush(&[self.collection.as_str(), self.catalogue.as_str()])
        {
            self.unflushed.store(true, Ordering::Release);
            return Err(error);
        }
        if how == Settling::WhenWorthIt {
            return Ok(());
        }
        progress.phase("making the index", 0);
        self.wire.wait("making the index", || {
            let (done, all, finished) = self.wire.indexed(&self.collection, EMBEDDING)?;
            progress.announce(all.saturating_sub(progress.total()));
            progress.advance(done.saturating_sub(progress.done()))?;
            Ok(finished)
        })
    }

    fn compact(&self, _: &Progress) -> Result<Compacted> {
        Err(SearchError::Server {
            url: self.url().to_string(),
            problem: "a Milvus server compacts its segments by itself".to_owned(),
            advice: Advice::command("index verify INDEX")
                .and(" with ")
                .set("repair")
                .and(" removes what writers that died left behind"),
        })
    }

    fn nearest(&self, query: &Embedding, ask: &Nearest) -> Result<Vec<Hit>> {
        if query.width() != self.width {
            return Err(SearchError::Width { expected: self.width, found: query.width() });
        }
        self.find(query, ask)
    }

    fn moments(&self, id: &VideoId) -> Result<Option<Vec<IndexedMoment>>> {
        let Some(row) = self.row(id)? else { return Ok(None) };
        let stored = self.stored(&row)?;
        let rows = stored.numbers.chunks_exact(self.width.max(1));
        let moment = |(span, numbers): (&Span, &[f32])| {
            // A moment without direction was never put.
            Embedding::unit(numbers.to_vec()).map(|embedding| IndexedMoment { span: *span, embedding })
        };
        Ok(Some(stored.spans.iter().zip(rows).filter_map(moment).collect()))
    }

    fn scores(&self, id: &VideoId, query: &Embedding) -> Result<Option<Vec<(Span, f32)>>> {
        let Some(row) = self.row(id)? else { return Ok(None) };
        let stored = self.stored(&row)?;
        let rows = stored.numbers.chunks_exact(self.width.max(1));
        Ok(Some(stored.spans.iter().copied().zip(rows.map(|numbers| dot(numbers, query.numbers()))).collect()))
    }

    fn sample(&self, count: usize) -> Result<Vec<Embedding>> {
        self.drawn(count)
    }

    fn status(&self) -> Result<Status> {
        let counts = self.counts(self.fresh())?;
        let in_graph = match self.index {
            VectorIndex::Flat => 0,
            VectorIndex::Hnsw => self.wire.indexed(&self.collection, EMBEDDING)?.0.min(counts.moments),
        };
        // Removed moments are the server's business: it does not say how many still take room, or how much.
        let (videos, vanished, moments) = (counts.videos, counts.vanished, counts.moments);
        Ok(Status { videos, vanished, moments, in_graph, ..Status::default() })
    }

    fn verify(&self, progress: &Progress) -> Result<Vec<Fault>> {
        let rows = self.all_rows()?;
        let expected: usize = rows.iter().map(|row| row.moments).sum();
        let mut found: FxHashMap<(VideoId, i64), usize> = FxHashMap::default();
        let mut faults = Vec::new();
        progress.phase("reading", expected);
        self.scan("id > 0", &["id", "video", "put", "start", "end", EMBEDDING], Fresh::Now, &mut |page| {
            let malformed = |problem| self.wire.malformed(problem);
            let spans = reading::spans(&page.columns).map_err(malformed)?;
            let numbers = page.columns.vectors(EMBEDDING, self.width, page.ids.len()).map_err(malformed)?;
            for ((place, video), put) in page.videos.iter().enumerate().zip(&page.puts) {
                *found.entry((video.clone(), *put)).or_default() += 1;
                let vector = numbers.get(place * self.width..(place + 1) * self.width).unwrap_or_default();
                let place_of = || format!("video `{video}`, moment at {:?}", spans.get(place).map(|span| span.start()));
                if spans.get(place).is_none_or(|span| span.is_empty()) {
                    faults.push(Fault { place: place_of(), problem: "has no length".to_owned() });
                }
                let length = dot(vector, vector).sqrt();
                let sound = (length - 1.0).abs() < ROUNDING;
                if !sound {
                    faults.push(Fault { place: place_of(), problem: format!("its embedding has length {length}") });
                }
            }
            Ok(progress.advance(page.ids.len())?)
        })?;
        for row in &rows {
            let there = found.get(&(row.entry.id.clone(), row.put)).copied().unwrap_or(0);
            if there != row.moments {
                let problem = format!("has {there} moments instead of {}", row.moments);
                faults.push(Fault { place: format!("video `{}`", row.entry.id), problem });
            }
        }
        Ok(faults)
    }
}
