//! Searching, listing, reading everything.

use std::sync::Arc;

use cuemark_core::{Advice, Span, VideoId};
use rustc_hash::FxHashSet;

use super::super::{Effort, Hit, Nearest, VectorIndex, rank};
use super::calls::{Fresh, Neighbours, Rows};
use super::columns::Columns;
use super::known::{Counts, Row, Stored};
use super::{EMBEDDING, Milvus, expression};
use crate::{Embedding, Result, SearchError, VideoEntry, dot};

/// The most rows that a server answers with.
pub(super) const MOST_ROWS: usize = 16_384;
/// Bytes of one page of rows.
const PAGE: usize = 8 << 20;
/// Candidates that the server's graph keeps on the way, unless told.
const EXPANSION: usize = 256;
/// The most of them.
const MOST_EXPANSION: usize = 32_768;
/// Names in one question about videos.
const NAMES: usize = 1000;

/// Some of the moments.
pub(super) struct Page {
    pub(super) ids: Vec<i64>,
    pub(super) videos: Vec<VideoId>,
    pub(super) puts: Vec<i64>,
    pub(super) columns: Columns,
}

impl Page {
    /// Which of them count, by the catalogue.
    pub(super) fn committed(&self, engine: &Milvus) -> Result<Vec<bool>> {
        engine.committed(&self.videos, &self.puts)
    }
}

impl Milvus {
    /// The row of one video.
    pub(super) fn row(&self, id: &VideoId) -> Result<Option<Arc<Row>>> {
        if let Some(known) = self.known().video(id) {
            return Ok(known);
        }
        self.fetch(std::slice::from_ref(id))?;
        Ok(self.known().video(id).flatten())
    }

    /// Whether any of some videos is there, all asked for at once.
    pub(super) fn has_any(&self, ids: &[VideoId]) -> Result<bool> {
        self.fetch(ids)?;
        let known = self.known();
        Ok(ids.iter().any(|id| known.video(id).flatten().is_some()))
    }

    /// Asks the catalogue about some videos.
    fn fetch(&self, ids: &[VideoId]) -> Result<()> {
        for ids in ids.chunks(NAMES) {
            let which = format!("id in {}", expression::list(ids.iter().map(VideoId::as_str)));
            let rows = self.catalogue_rows(which, None)?;
            let mut known = self.known();
            let mut missing: FxHashSet<&VideoId> = ids.iter().collect();
            for row in rows {
                missing.remove(&row.entry.id);
                known.learn(row.entry.id.clone(), Some(Arc::new(row)));
            }
            for id in missing {
                known.learn(id.clone(), None);
            }
        }
        Ok(())
    }

    fn catalogue_rows(&self, which: String, most: Option<usize>) -> Result<Vec<Row>> {
        let columns = &["id", "put", "moments", "entry"];
        let ask = Rows { collection: &self.catalogue, which, columns, most, fresh: self.fresh() };
        let columns = self.wire.rows(&ask)?;
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        self.rows_of(&columns).map_err(|problem| self.wire.malformed(problem))
    }

    fn rows_of(&self, columns: &Columns) -> Result<Vec<Row>, String> {
        let (puts, moments) = (columns.longs("put")?, columns.longs("moments")?);
        let named = columns.texts("id")?.iter().zip(columns.texts("entry")?);
        let row = |((id, entry), (put, moments)): ((&String, &String), (&i64, &i64))| {
            let entry: VideoEntry = serde_json::from_str(entry).map_err(|error| format!("video `{id}`: {error}"))?;
            if entry.id.as_str() != id {
                return Err(format!("video `{id}` calls itself `{}`", entry.id));
            }
            Ok(Row { entry, put: *put, moments: usize::try_from(*moments).unwrap_or(0) })
        };
        named.zip(puts.iter().zip(moments)).map(row).collect()
    }

    /// The whole catalogue, sorted by name.
    pub(super) fn all_rows(&self) -> Result<Vec<Row>> {
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let last = rows.last().map_or("", |row| row.entry.id.as_str());
            let page = self.catalogue_rows(format!("id > {}", expression::quoted(last)), Some(NAMES))?;
            let is_last = page.len() < NAMES;
            rows.extend(page);
            rows.sort_by(|a, b| a.entry.id.cmp(&b.entry.id));
            if is_last {
                return Ok(rows);
            }
        }
    }

    /// How many there are; `Fresh::Now` asks the server whatever is remembered.
    pub(super) fn counts(&self, fresh: Fresh) -> Result<Counts> {
        if let Some(counts) = self.known().counted().filter(|_| fresh != Fresh::Now) {
            return Ok(counts);
        }
        let count = |collection: &str, which: &str| self.wire.count(collection, which, fresh);
        let counts = Counts {
            videos: count(&self.catalogue, "present == true")?,
            vanished: count(&self.catalogue, "present == false")?,
            moments: count(&self.collection, "present == true")?,
        };
        self.known().learn_counts(counts);
        Ok(counts)
    }

    /// Which moments count: those whose put is the one that the catalogue names.
    pub(super) fn committed(&self, videos: &[VideoId], puts: &[i64]) -> Result<Vec<bool>> {
        let doubtful: FxHashSet<&VideoId> = {
            let known = self.known();
            let pairs = videos.iter().zip(puts);
            pairs.filter(|(video, put)| !known.counts(video, **put)).map(|(video, _)| video).collect()
        };
        let doubtful: Vec<VideoId> = doubtful.into_iter().cloned().collect();
        self.fetch(&doubtful)?;
        let known = self.known();
        Ok(videos.iter().zip(puts).map(|(video, put)| known.counts(video, *put)).collect())
    }

    /// The nearest, as [`crate::Engine::nearest`] promises.
    pub(super) fn find(&self, query: &Embedding, ask: &Nearest) -> Result<Vec<Hit>> {
        let Some(which) = expression::of(&ask.filter).filter(|_| ask.count > 0) else { return Ok(Vec::new()) };
        if ask.effort == Effort::Exact && self.index == VectorIndex::Hnsw {
            return self.look_at_all(query, &which, ask.count);
        }
        let wanted = match ask.effort {
            Effort::Expansion(expansion) => expansion,
            Effort::Approximate | Effort::Exact => EXPANSION,
        };
        let mut count = ask.count.min(MOST_ROWS);
        loop {
            let expansion = (self.index == VectorIndex::Hnsw).then(|| wanted.max(count).min(MOST_EXPANSION));
            let (found, mut hits) = self.found(query, &which, count, expansion)?;
            // What does not count took places away: more is asked for.
            if hits.len() >= ask.count || found < count || count == MOST_ROWS {
                rank(&mut hits, ask.count);
                return Ok(hits);
            }
            count = (2 * count).min(MOST_ROWS);
        }
    }

    /// How many moments the server found, and those of them that count.
    fn found(
        &self,
        query: &Embedding,
        which: &str,
        count: usize,
        expansion: Option<usize>,
    ) -> Result<(usize, Vec<Hit>)> {
        let answer = self.wire.neighbours(&Neighbours {
            collection: &self.collection,
            field: EMBEDDING,
            which,
            columns: &["video", "put", "start", "end"],
            query: query.numbers(),
            count,
            expansion,
            fresh: self.fresh(),
        })?;
        if answer.scores.is_empty() {
            return Ok((0, Vec::new()));
        }
        let columns = Columns(answer.fields_data);
        let malformed = |problem| self.wire.malformed(problem);
        let videos: Vec<VideoId> =
            columns.texts("video").map_err(malformed)?.iter().map(|id| VideoId::new(id.as_str())).collect();
        let puts = columns.longs("put").map_err(malformed)?;
        let spans = spans(&columns).map_err(malformed)?;
        let committed = self.committed(&videos, puts)?;
        let found = answer.scores.len();
        let hits = videos.into_iter().zip(spans).zip(answer.scores).zip(committed);
        let counting = hits.filter(|(_, committed)| *committed);
        Ok((found, counting.map(|(((video, span), score), _)| Hit::new(video, span, score)).collect()))
    }

    /// Reads every admitted moment and scores it here: the server's graph has no exact mode.
    fn look_at_all(&self, query: &Embedding, which: &str, count: usize) -> Result<Vec<Hit>> {
        let mut best = Vec::new();
        self.scan(which, &["id", "video", "put", "start", "end", EMBEDDING], self.fresh(), &mut |page| {
            let malformed = |problem| self.wire.malformed(problem);
            let spans = spans(&page.columns).map_err(malformed)?;
            let numbers = page.columns.vectors(EMBEDDING, self.width, page.ids.len()).map_err(malformed)?;
            let committed = page.committed(self)?;
            let scored = page.videos.iter().zip(spans).zip(numbers.chunks_exact(self.width.max(1))).zip(committed);
            for (((video, span), numbers), committed) in scored {
                if committed {
                    best.push(Hit::new(video.clone(), span, dot(numbers, query.numbers())));
                }
            }
            rank(&mut best, count);
            Ok(())
        })?;
        Ok(best)
    }

    /// Reads moments page by page, in the order of their keys.
    pub(super) fn scan(
        &self,
        which: &str,
        columns: &[&str],
        fresh: Fresh,
        each: &mut dyn FnMut(&Page) -> Result<()>,
    ) -> Result<()> {
        let row_bytes = if columns.contains(&EMBEDDING) { 4 * self.width + 128 } else { 128 };
        let rows = (PAGE / row_bytes).clamp(1, MOST_ROWS);
        let mut last = i64::MIN;
        loop {
            let which = format!("({which}) and id > {}", last.max(0));
            let ask = Rows { collection: &self.collection, which, columns, most: Some(rows), fresh };
            let found = self.wire.rows(&ask)?;
            if found.is_empty() {
                return Ok(());
            }
            let page = page_of(found).map_err(|problem| self.wire.malformed(problem))?;
            let (count, greatest) = (page.ids.len(), page.ids.iter().max().copied().unwrap_or(i64::MAX));
            each(&page)?;
            if count < rows || greatest <= last {
                return Ok(());
            }
            last = greatest;
        }
    }

    /// The moments of one video.
    pub(super) fn stored(&self, row: &Row) -> Result<Arc<Stored>> {
        let id = &row.entry.id;
        if let Some(known) = self.known().moments(id, row.put) {
            return Ok(known);
        }
        let mut stored = Stored::default();
        let rows = (PAGE / (4 * self.width + 128)).clamp(1, MOST_ROWS);
        for first in (0..row.moments).step_by(rows) {
            let which = format!(
                "video == {} and put == {} and number >= {first} and number < {}",
                expression::quoted(id.as_str()),
                row.put,
                first + rows
            );
            let columns = &["number", "start", "end", EMBEDDING];
            let ask = Rows { collection: &self.collection, which, columns, most: None, fresh: self.fresh() };
            let columns = self.wire.rows(&ask)?;
            if !columns.is_empty() {
                append(&mut stored, &columns, self.width).map_err(|problem| self.wire.malformed(problem))?;
            }
        }
        if stored.spans.len() != row.moments {
            return Err(SearchError::Server {
                url: self.url.to_string(),
                problem: format!("video `{id}` has {} moments instead of {}", stored.spans.len(), row.moments),
                advice: Advice::command("index verify INDEX").and(" lists what is damaged; add the video again"),
            });
        }
        let stored = Arc::new(stored);
        self.known().learn_moments(id, row.put, &stored);
        Ok(stored)
    }

    /// Embeddings of the moments with the smallest lots.
    pub(super) fn drawn(&self, count: usize) -> Result<Vec<Embedding>> {
        let total = self.counts(self.fresh())?.moments;
        if total == 0 || count == 0 {
            return Ok(Vec::new());
        }
        // A quarter more than wanted, as lots are spread evenly only on average.
        let share = (1.25 * count as f64 / total as f64).min(1.0);
        let below = (share * (1u64 << 32) as f64).ceil() as i64;
        let which = format!("present == true and lot < {below}");
        let most = Some((2 * count).min(MOST_ROWS));
        let columns = &["lot", EMBEDDING];
        let ask = Rows { collection: &self.collection, which, columns, most, fresh: self.fresh() };
        let columns = self.wire.rows(&ask)?;
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let malformed = |problem| self.wire.malformed(problem);
        let lots = columns.longs("lot").map_err(malformed)?;
        let numbers = columns.vectors(EMBEDDING, self.width, lots.len()).map_err(malformed)?;
        let mut drawn: Vec<(i64, &[f32])> = lots.iter().copied().zip(numbers.chunks_exact(self.width.max(1))).collect();
        drawn.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.partial_cmp(b.1).unwrap_or(std::cmp::Ordering::Equal)));
        drawn.truncate(count);
        Ok(drawn.into_iter().filter_map(|(_, numbers)| Embedding::unit(numbers.to_vec())).collect())
    }
}

fn page_of(columns: Columns) -> Result<Page, String> {
    let ids = columns.longs("id")?.to_vec();
    let videos: Vec<VideoId> = columns.texts("video")?.iter().map(|id| VideoId::new(id.as_str())).collect();
    let puts = columns.longs("put")?.to_vec();
    if videos.len() != ids.len() || puts.len() != ids.len() {
        return Err("columns of an answer differ in length".to_owned());
    }
    Ok(Page { ids, videos, puts, columns })
}

/// Where moments lie; what is no span is an error.
pub(super) fn spans(columns: &Columns) -> Result<Vec<Span>, String> {
    let pairs = columns.doubles("start")?.iter().zip(columns.doubles("end")?);
    pairs.map(|(start, end)| Span::new(*start, *end).map_err(|error| error.to_string())).collect()
}

/// Adds one page of a video's moments in the order of their numbers.
fn append(stored: &mut Stored, columns: &Columns, width: usize) -> Result<(), String> {
    let numbers = columns.longs("number")?;
    let spans = spans(columns)?;
    let vectors = columns.vectors(EMBEDDING, width, numbers.len())?;
    let mut order: Vec<usize> = (0..numbers.len().min(spans.len())).collect();
    order.sort_by_key(|place| numbers.get(*place).copied());
    for place in order {
        stored.spans.extend(spans.get(place));
        stored.numbers.extend(vectors.get(place * width..(place + 1) * width).unwrap_or_default());
    }
    Ok(())
}
