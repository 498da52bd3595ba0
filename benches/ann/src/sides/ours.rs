//! The embedded engine of `cuemark-search` with its log, as users have it.

use anyhow::Context as _;
use camino::Utf8Path;
use cuemark_core::{Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{Effort, Embedding, Engine as _, Filter, IndexedMoment, Nearest, Settling, VideoEntry};

use super::{Built, Side};
use crate::COUNT;
use crate::vectors::Vectors;

/// Moments of one video.
const PER_VIDEO: usize = 136;

pub struct Ours(Embedded);

pub fn build(moments: &Vectors, folder: &Utf8Path) -> anyhow::Result<Ours> {
    let engine = Embedded::create(folder, moments.width, Overwrite::Never)?;
    for (number, video) in moments.numbers.chunks(PER_VIDEO * moments.width).enumerate() {
        let entry = VideoEntry::without_file(VideoId::new(number.to_string()), 1e6);
        let of_video = video.chunks_exact(moments.width).enumerate();
        // The span says which moment it is.
        let moment = |(place, numbers): (usize, &[f32])| -> anyhow::Result<IndexedMoment> {
            let row = (number * PER_VIDEO + place) as f64;
            let embedding = Embedding::unit(numbers.to_vec()).context("a moment without direction")?;
            Ok(IndexedMoment { span: Span::new(row, row + 1.0)?, embedding })
        };
        engine.put(&entry, &of_video.map(moment).collect::<anyhow::Result<Vec<_>>>()?)?;
    }
    engine.settle(Settling::Fully, &Progress::new())?;
    Ok(Ours(engine))
}

pub fn open(folder: &Utf8Path) -> anyhow::Result<Ours> {
    Ok(Ours(Embedded::open(folder)?))
}

impl Built for Ours {
    fn rewrite(&mut self) -> anyhow::Result<()> {
        Ok(self.0.settle(Settling::Anew, &Progress::new())?)
    }
}

impl Side for Ours {
    fn nearest(&self, query: &[f32], effort: usize) -> anyhow::Result<Vec<usize>> {
        let query = Embedding::unit(query.to_vec()).context("a query without direction")?;
        let ask = Nearest { count: COUNT, filter: Filter::default(), effort: Effort::Expansion(effort) };
        let hits = self.0.nearest(&query, &ask)?;
        Ok(hits.into_iter().map(|hit| hit.span.start() as usize).collect())
    }
}
