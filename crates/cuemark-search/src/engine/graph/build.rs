//! Putting moments into a graph (HNSW's insertion), on all threads.
//!
//! Threads share the graph as it grows. No thread ever holds two locks, so none waits in a ring; a moment that is being put in
//! may see a neighbour's links as they were a moment ago, which makes the graph another one and hardly a worse one. That is why
//! two graphs of one log differ in a few links, and why nothing that must be exact is read off a graph.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use cuemark_core::{Progress, Rng, Stopped};
use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use super::product::{product, widen_into};
use super::search::{Scored, Scratch, Scratches, descend, walk};
use super::{BUILD_EXPANSION, GROUND_LINKS, LEVELS, LINKS, NO_LINK, View, eight_bits};
use crate::engine::ahead::fetch;
use crate::engine::snapshot::Snapshot;

/// Levels are drawn from this; the same log gives the same levels, so that two graphs of it differ as little as can be.
const SEED: u64 = 0x6d6f_6d65_6e74;
/// Moments between two words about progress.
const CHUNK: usize = 8192;

/// A graph that grows.
pub(super) struct Builder {
    width: usize,
    rows: Vec<u32>,
    vectors: Vec<i8>,
    // A lock for each moment: one for all would put threads in a queue, and a list of links is written in no time.
    ground: Vec<Mutex<Links<GROUND_LINKS>>>,
    /// Links above the ground, lowest level first. One moment in sixteen has any.
    upper: Vec<Box<[Mutex<Links<LINKS>>]>>,
    entry: RwLock<Option<(u32, usize)>>,
    rng: Rng,
}

/// At most `N` links; [`NO_LINK`] stands behind the last.
// An array, not a vector: it is copied out from under its lock, which a heap would make slow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<const N: usize>([u32; N]);

impl<const N: usize> Default for Links<N> {
    fn default() -> Self {
        Self([NO_LINK; N])
    }
}

impl<const N: usize> AsRef<[u32]> for Links<N> {
    #[inline(always)]
    fn as_ref(&self) -> &[u32] {
        &self.0
    }
}

impl<const N: usize> Links<N> {
    fn of(links: impl IntoIterator<Item = u32>) -> Self {
        let mut all = Self::default();
        for (slot, link) in all.0.iter_mut().zip(links) {
            *slot = link;
        }
        all
    }
}

/// One moment being put in, compiled as a whole for the processor that it runs on, as a search is.
struct Putting<'a> {
    builder: &'a Builder,
    moment: u32,
    scratch: &'a mut Scratch,
}

impl NullaryFnOnce for Putting<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.builder.put(self.moment, self.scratch);
    }
}

impl Builder {
    /// An empty graph, or what was in an earlier one.
    pub(super) fn new(width: usize, earlier: Option<View>) -> Self {
        let mut builder = Self {
            width,
            rows: Vec::new(),
            vectors: Vec::new(),
            ground: Vec::new(),
            upper: Vec::new(),
            entry: RwLock::new(None),
            rng: Rng::stream(SEED, "levels"),
        };
        let Some(view) = earlier else { return builder };
        // From the beginning of the stream the new moments would be given the levels of the oldest ones again.
        builder.rng = Rng::stream(SEED ^ view.rows.len() as u64, "levels");
        builder.rows = view.rows.to_vec();
        builder.vectors.reserve_exact(view.rows.len() * width);
        let slots = view.upper.len() / LINKS;
        // A moment's levels end where those of the next one that has any begin.
        let mut ends: Vec<usize> = vec![0; view.rows.len()];
        let mut next = slots;
        for (end, at) in ends.iter_mut().zip(view.upper_at).rev() {
            *end = next;
            next = if *at == u32::MAX { next } else { *at as usize };
        }
        for (moment, end) in ends.into_iter().enumerate() {
            let at = view.upper_at.get(moment).copied().unwrap_or(u32::MAX);
            let levels = if at == u32::MAX { 0 } else { end.saturating_sub(at as usize).min(LEVELS) };
            // The earlier graph is a file: a link that leads outside it is damage, and is left out.
            let known = |link: &u32| (*link as usize) < view.rows.len();
            let links = |level: usize| view.links(moment as u32, level).iter().copied().filter(known);
            builder.vectors.extend_from_slice(view.vector(moment as u32));
            builder.vectors.resize((moment + 1) * width, 0);
            builder.ground.push(Mutex::new(Links::of(links(0))));
            builder.upper.push((1..=levels).map(|level| Mutex::new(Links::of(links(level)))).collect());
        }
        builder.entry = RwLock::new(view.entry);
        builder
    }

    /// Puts in every live moment of the log from `first` on; each is a step of `progress`.
    pub(super) fn add(
        &mut self,
        snapshot: &Snapshot,
        first: usize,
        scale: f32,
        progress: &Progress,
    ) -> Result<(), Stopped> {
        let start = self.rows.len();
        let live = (first..snapshot.rows()).filter(|row| snapshot.put_of(*row).is_some_and(|(_, put)| put.live));
        self.rows.extend(live.map(|row| row as u32));
        let added = self.rows.len() - start;
        self.vectors.resize(self.rows.len() * self.width, 0);
        let (rows, width) = (&self.rows[start..], self.width.max(1));
        self.vectors[start * self.width..].par_chunks_mut(width).zip(rows).for_each_init(
            || vec![0f32; width],
            |full, (eight, row)| eight_bits(snapshot.vector(*row as usize), scale, full, eight),
        );
        // Before any thread begins, so that levels depend on the log and not on who was first; and so that the vectors of links
        // do not grow while others read them.
        for _ in 0..added {
            self.ground.push(Mutex::default());
            let level = self.draw_level();
            self.upper.push((0..level).map(|_| Mutex::default()).collect());
        }
        // The first moment of all has nobody to be linked to: it is where the others begin to look.
        let mut begin = start;
        if added > 0 && self.entry.read().unwrap_or_else(PoisonError::into_inner).is_none() {
            self.entry = RwLock::new(Some((start as u32, self.upper[start].len())));
            begin = start + 1;
        }
        let scratches = Scratches::default();
        progress.phase("making it fast", added);
        progress.advance(begin - start)?;
        while begin < start + added {
            let end = (begin + CHUNK).min(start + added);
            (begin..end).into_par_iter().for_each_init(
                || scratches.take(),
                |scratch, moment| Arch::new().dispatch(Putting { builder: self, moment: moment as u32, scratch }),
            );
            progress.advance(end - begin)?;
            begin = end;
        }
        Ok(())
    }

    /// Level 0 for most, 1 for one in `LINKS`, 2 for one in `LINKS`² (the paper's `mL` = 1 / ln M): each level is a sample of
    /// the one below, thin enough that its links span what many links below do.
    fn draw_level(&mut self) -> usize {
        // Uniform is never 1, so this is never 0, whose logarithm has no end.
        let draw = 1.0 - self.rng.uniform();
        ((-draw.ln() / (LINKS as f64).ln()) as usize).min(LEVELS - 1)
    }

    #[inline(always)]
    fn vector(&self, moment: u32) -> &[i8] {
        let first = moment as usize * self.width;
        &self.vectors[first..first + self.width]
    }

    #[inline(always)]
    fn ground(&self, moment: u32) -> MutexGuard<'_, Links<GROUND_LINKS>> {
        self.ground[moment as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn upper(&self, moment: u32, level: usize) -> Option<MutexGuard<'_, Links<LINKS>>> {
        let levels = self.upper.get(moment as usize)?;
        Some(levels.get(level - 1)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts one moment in (the paper's algorithm 1).
    #[inline(always)]
    fn put(&self, moment: u32, scratch: &mut Scratch) {
        let level = self.upper[moment as usize].len();
        let entry = *self.entry.read().unwrap_or_else(PoisonError::into_inner);
        let Some((entry, top)) = entry else { return };
        let mut query = Vec::with_capacity(self.width);
        widen_into(&mut query, self.vector(moment));
        let mut at = Scored::new(product(&query, self.vector(entry)), entry);
        let vector = |moment: u32| self.vector(moment);
        // Above its own level it is only passing through: the nearest moment there is where the next level begins.
        for above in (level + 1..=top).rev() {
            // A copy: the lock is gone before the first product.
            let links = |moment: u32| self.upper(moment, above).map_or_else(Links::default, |links| *links);
            at = descend(&query, at, links, vector);
        }
        let mut entries = vec![at];
        // Another thread may have met it one level up and linked to it already.
        let not_itself = |other: u32| other != moment;
        // On its own levels it looks widely, since what it is linked to now is how it will be found later.
        for here in (0..=level.min(top)).rev() {
            scratch.begin(self.rows.len(), BUILD_EXPANSION);
            if here == 0 {
                let soon =
                    |moment: u32| fetch(self.ground.get(moment as usize).map(std::slice::from_ref).unwrap_or_default());
                walk(&query, &entries, scratch, |moment| *self.ground(moment), vector, (soon, |_| ()), not_itself);
            } else {
                let links = |moment: u32| self.upper(moment, here).map_or_else(Links::default, |links| *links);
                walk(&query, &entries, scratch, links, vector, (|_| (), |_| ()), not_itself);
            }
            entries = scratch.take_best();
            // `LINKS` on the ground too, where there is room for twice as many: the rest is for those who come later and link back.
            let chosen = self.choose(&entries, LINKS);
            let links = chosen.iter().map(|scored| scored.moment());
            if here == 0 {
                *self.ground(moment) = Links::of(links);
            } else if let Some(mut own) = self.upper(moment, here) {
                *own = Links::of(links);
            }
            for other in &chosen {
                if here == 0 {
                    self.link_back(&mut *self.ground(other.moment()), other.moment(), moment);
                } else if let Some(mut links) = self.upper(other.moment(), here) {
                    self.link_back(&mut *links, other.moment(), moment);
                }
            }
        }
        // Last: as the entry it is where others begin, and before it was linked they would have got nowhere from it.
        if level > top {
            let mut entry = self.entry.write().unwrap_or_else(PoisonError::into_inner);
            // Asked again under the lock: another thread may have put in a higher one since.
            if entry.is_none_or(|(_, top)| level > top) {
                *entry = Some((moment, level));
            }
        }
    }

    /// Adds a link from `from` to `to`, dropping the least useful one when there are too many.
    // Without links back nobody would find the newcomer: those who were there before do not know it.
    #[inline(always)]
    fn link_back<const N: usize>(&self, links: &mut Links<N>, from: u32, to: u32) {
        if links.0.contains(&to) {
            return;
        }
        if let Some(free) = links.0.iter_mut().find(|link| **link == NO_LINK) {
            *free = to;
            return;
        }
        let mut own = Vec::with_capacity(self.width);
        widen_into(&mut own, self.vector(from));
        let all = links.0.iter().chain(std::iter::once(&to));
        let scored = all.map(|moment| Scored::new(product(&own, self.vector(*moment)), *moment));
        let mut candidates: Vec<Scored> = scored.collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        *links = Links::of(self.choose(&candidates, N).iter().map(|scored| scored.moment()));
    }

    /// Of candidates, best first, those that are nearer to the moment than to any chosen before (the paper's algorithm 4).
    // The nearest alone would all lie in one cluster and a search could not leave it: whoever can be reached through a chosen
    // neighbour gives his place to one that lies another way. Copies of one moment are as near to each other as can be, and so
    // only one of them is linked to.
    #[inline(always)]
    fn choose(&self, candidates: &[Scored], most: usize) -> Vec<Scored> {
        let mut chosen: Vec<Scored> = Vec::with_capacity(most);
        let mut own = Vec::with_capacity(self.width);
        for candidate in candidates {
            if chosen.len() == most {
                break;
            }
            widen_into(&mut own, self.vector(candidate.moment()));
            if chosen.iter().all(|other| product(&own, self.vector(other.moment())) < candidate.score()) {
                chosen.push(*candidate);
            }
        }
        chosen
    }

    /// The graph as it is written, part by part.
    pub(super) fn finish(self) -> Finished {
        // Locks are taken off one by one, without a second copy of what they guard: links are half of what a graph takes.
        let mut upper_at = Vec::with_capacity(self.upper.len());
        let mut upper: Vec<u32> = Vec::new();
        for levels in self.upper {
            upper_at.push(if levels.is_empty() { u32::MAX } else { (upper.len() / LINKS) as u32 });
            for links in levels {
                upper.extend(links.into_inner().unwrap_or_else(PoisonError::into_inner).as_ref());
            }
        }
        Finished {
            width: self.width,
            entry: self.entry.into_inner().unwrap_or_else(PoisonError::into_inner),
            rows: self.rows,
            vectors: self.vectors,
            ground: self.ground,
            upper_at,
            upper,
        }
    }
}

/// A graph that has grown.
pub(super) struct Finished {
    pub(super) width: usize,
    pub(super) entry: Option<(u32, usize)>,
    pub(super) rows: Vec<u32>,
    vectors: Vec<i8>,
    ground: Vec<Mutex<Links<GROUND_LINKS>>>,
    pub(super) upper_at: Vec<u32>,
    pub(super) upper: Vec<u32>,
}

impl Finished {
    /// Each moment's eight-bit numbers and its links on the ground.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&[i8], Links<GROUND_LINKS>)> {
        let links = |links: &Mutex<Links<GROUND_LINKS>>| *links.lock().unwrap_or_else(PoisonError::into_inner);
        self.vectors.chunks_exact(self.width.max(1)).zip(self.ground.iter().map(links))
    }
}
