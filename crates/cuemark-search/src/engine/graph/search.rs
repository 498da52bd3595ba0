//! Walking a graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use pulp::{Arch, NullaryFnOnce};

use super::{View, product};

/// A moment with its score, ordered by score; among equal scores the smaller number is the better.
// One integer, the score above the number turned round: the heaps of a walk do little but compare, and this is one comparison.
// That ties are decided makes the same query give the same answers on every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scored(i64);

impl Scored {
    #[inline(always)]
    pub(super) fn new(score: i32, moment: u32) -> Self {
        Self((i64::from(score) << 32) | i64::from(!moment))
    }

    #[inline(always)]
    pub(super) fn moment(self) -> u32 {
        !(self.0 as u32)
    }

    #[inline(always)]
    pub(super) fn score(self) -> i32 {
        (self.0 >> 32) as i32
    }
}

/// What one search needs and the next can use again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The last search that met each moment (HNSW's visited set).
    // Numbers instead of marks: to wipe a mark per moment would cost more than a search, which meets a few thousand of millions.
    met: Vec<u32>,
    search: u32,
    open: BinaryHeap<Scored>,
    /// The best so far, the worst of them on top.
    best: BinaryHeap<Reverse<Scored>>,
}

impl Scratch {
    pub(super) fn begin(&mut self, moments: usize) {
        if self.met.len() < moments {
            self.met.resize(moments, 0);
        }
        self.search = self.search.wrapping_add(1);
        // After four billion searches the numbers begin again, and one of an old search would pass for this one's.
        if self.search == 0 {
            self.met.fill(0);
            self.search = 1;
        }
        self.open.clear();
        self.best.clear();
    }

    /// Whether this search meets a moment for the first time.
    #[inline(always)]
    fn meets(&mut self, moment: u32) -> bool {
        match self.met.get_mut(moment as usize) {
            Some(met) if *met != self.search => {
                *met = self.search;
                true
            }
            // Met before; or a link of a damaged file that leads nowhere.
            _ => false,
        }
    }

    /// The best, best first; nothing is left.
    pub(super) fn take_best(&mut self) -> Vec<Scored> {
        let mut best: Vec<Scored> = self.best.drain().map(|Reverse(scored)| scored).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        best
    }
}

/// Scratches that nobody is using.
// A scratch is four bytes for every moment: made anew for each query it would cost more than the walk. There are as many as
// searches ever ran at once.
#[derive(Debug, Default)]
pub(super) struct Scratches(Mutex<Vec<Scratch>>);

impl Scratches {
    pub(super) fn take(&self) -> Scratch {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give_back(&self, scratch: Scratch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// The log's numbers of the `expansion` (HNSW's `ef`) admitted moments that look nearest, best first.
pub(super) fn nearest(
    view: View,
    query: &[i8],
    expansion: usize,
    scratch: &mut Scratch,
    admits: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let Some(entry) = view.entry else { return Vec::new() };
    let row = |moment: u32| view.rows.get(moment as usize).map(|row| *row as usize);
    let admits = |moment: u32| row(moment).is_some_and(&admits);
    Arch::new().dispatch(Search { view, entry, query, expansion, scratch, admits });
    scratch.take_best().into_iter().filter_map(|scored| row(scored.moment())).collect()
}

/// One search, compiled as a whole for the processor that it runs on.
///
/// Only what is inlined into the dispatching function is compiled so. A closure would not be, whatever stands before it: it is
/// called through a function of the compiler's that is not marked to be inlined.
struct Search<'a, A> {
    view: View<'a>,
    entry: (u32, usize),
    query: &'a [i8],
    expansion: usize,
    scratch: &'a mut Scratch,
    admits: A,
}

impl<A: Fn(u32) -> bool> NullaryFnOnce for Search<'_, A> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { view, entry: (entry, top), query, expansion, scratch, admits } = self;
        let mut at = Scored::new(product(query, view.vector(entry)), entry);
        for level in (1..=top).rev() {
            at = descend(query, at, |moment| view.links(moment, level), |moment| view.vector(moment));
        }
        scratch.begin(view.rows.len());
        let terrain = Terrain {
            for_each_link: |moment, each: &mut dyn FnMut(u32)| {
                view.links(moment, 0).iter().for_each(|link| each(*link));
            },
            vector: |moment| view.vector(moment),
        };
        walk(query, &[at], expansion.max(1), scratch, terrain, admits);
    }
}

/// Goes to a better neighbour for as long as there is one (greedy search with `ef` = 1).
// The upper levels are there to get near quickly, so one way is enough: what it misses, the wide walk on the ground finds.
#[inline(always)]
pub(super) fn descend<'a, L: AsRef<[u32]>>(
    query: &[i8],
    mut at: Scored,
    links: impl Fn(u32) -> L,
    vector: impl Fn(u32) -> &'a [i8],
) -> Scored {
    loop {
        let mut better = at;
        for link in links(at.moment()).as_ref() {
            better = better.max(Scored::new(product(query, vector(*link)), *link));
        }
        if better == at {
            return at;
        }
        at = better;
    }
}

/// What a walk goes over: who is linked to whom on its level, and where everybody lies.
pub(super) struct Terrain<L, V> {
    pub(super) for_each_link: L,
    pub(super) vector: V,
}

/// Best first from `entries`, keeping the `expansion` best that `admits` lets through in `scratch.best` (the paper's
/// algorithm 2).
#[inline(always)]
pub(super) fn walk<'a>(
    query: &[i8],
    entries: &[Scored],
    expansion: usize,
    scratch: &mut Scratch,
    terrain: Terrain<impl Fn(u32, &mut dyn FnMut(u32)), impl Fn(u32) -> &'a [i8]>,
    admits: impl Fn(u32) -> bool,
) {
    let Terrain { for_each_link, vector } = terrain;
    for entry in entries {
        if scratch.meets(entry.moment()) {
            scratch.open.push(*entry);
            if admits(entry.moment()) {
                scratch.best.push(Reverse(*entry));
            }
        }
    }
    let mut neighbours = [0u32; super::GROUND_LINKS];
    while let Some(at) = scratch.open.pop() {
        let worst = scratch.best.peek().map(|Reverse(worst)| *worst);
        // Everything still open is worse than this one: neighbours of what is worse than all that is kept are seldom better.
        if scratch.best.len() >= expansion && worst.is_some_and(|worst| at < worst) {
            break;
        }
        // First the new ones, then their products: while a graph is built the links stand under a lock, which is not held while
        // anything is computed. Room comes before `meets`, so that what finds none is not taken for met.
        let mut count = 0;
        for_each_link(at.moment(), &mut |link| {
            if count < neighbours.len() && scratch.meets(link) {
                neighbours[count] = link;
                count += 1;
            }
        });
        for link in &neighbours[..count] {
            let scored = Scored::new(product(query, vector(*link)), *link);
            let worst = scratch.best.peek().map(|Reverse(worst)| *worst);
            if scratch.best.len() < expansion || worst.is_none_or(|worst| scored > worst) {
                // Whoever a filter refuses is walked over all the same: the moments it admits may be linked through it alone.
                scratch.open.push(scored);
                if admits(*link) {
                    scratch.best.push(Reverse(scored));
                    if scratch.best.len() > expansion {
                        scratch.best.pop();
                    }
                }
            }
        }
    }
}
