//! Walking a graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use pulp::{Arch, NullaryFnOnce};

use super::product::product;
use super::{GROUND_LINKS, NO_LINK, View};
use crate::engine::ahead::fetch;

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
    /// A bit for each moment: whether this search has met it (HNSW's visited set).
    // An eighth of a byte, so that those of a million moments stay in the cache that is nearest but one.
    met: Vec<u64>,
    /// Whom it has met, so that only their bits are wiped: a few thousand of millions.
    known: Vec<u32>,
    open: BinaryHeap<Scored>,
    best: Best,
}

/// The best moments so far, as many as there is room for.
#[derive(Debug, Default)]
struct Best {
    room: usize,
    /// The worst of them on top.
    kept: BinaryHeap<Reverse<Scored>>,
}

impl Best {
    fn begin(&mut self, room: usize) {
        self.room = room;
        self.kept.clear();
    }

    /// Whether there is no room for something as bad as this.
    #[inline(always)]
    fn refuses(&self, scored: Scored) -> bool {
        self.kept.len() >= self.room && self.kept.peek().is_some_and(|Reverse(worst)| scored < *worst)
    }

    /// Keeps what is not refused, in place of the worst where there is no room beside it.
    #[inline(always)]
    fn keep(&mut self, scored: Scored) {
        if self.kept.len() < self.room {
            self.kept.push(Reverse(scored));
        } else if let Some(mut worst) = self.kept.peek_mut() {
            *worst = Reverse(scored);
        }
    }
}

impl Scratch {
    /// Begins a search among so many moments that keeps the `room` best.
    pub(super) fn begin(&mut self, moments: usize, room: usize) {
        for moment in self.known.drain(..) {
            if let Some(word) = self.met.get_mut(moment as usize / 64) {
                *word = 0;
            }
        }
        if self.met.len() < moments.div_ceil(64) {
            self.met.resize(moments.div_ceil(64), 0);
        }
        self.open.clear();
        self.best.begin(room);
    }

    /// Whether this search meets a moment for the first time; who is met so is to be put among the known.
    #[inline(always)]
    fn meets(&mut self, moment: u32) -> bool {
        match self.met.get_mut(moment as usize / 64) {
            Some(word) => {
                let bit = 1 << (moment % 64);
                let before = std::mem::replace(word, *word | bit);
                before & bit == 0
            }
            // No link; or one of a damaged file that leads nowhere.
            None => false,
        }
    }

    /// The best, best first; nothing is left.
    pub(super) fn take_best(&mut self) -> Vec<Scored> {
        let mut best: Vec<Scored> = self.best.kept.drain().map(|Reverse(scored)| scored).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        best
    }
}

/// Scratches that nobody is using.
// A scratch is a byte for every moment: made anew for each query it would cost more than the walk. There are as many as
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

/// The log's numbers of the admitted moments that look nearest, and their products, best first, of a walk that keeps `expansion`
/// (HNSW's `ef`).
pub(super) fn nearest(
    view: View,
    query: &[i16],
    expansion: usize,
    scratch: &mut Scratch,
    admits: impl Fn(usize) -> bool,
) -> Vec<(usize, i32)> {
    let Some(entry) = view.entry else { return Vec::new() };
    let row = |moment: u32| view.rows.get(moment as usize).map(|row| *row as usize);
    let admits = |moment: u32| row(moment).is_some_and(&admits);
    Arch::new().dispatch(Search { view, entry, query, expansion, scratch, admits });
    scratch.take_best().into_iter().filter_map(|scored| Some((row(scored.moment())?, scored.score()))).collect()
}

/// One search, compiled as a whole for the processor that it runs on.
///
/// Only what is inlined into the dispatching function is compiled so. A closure would not be, whatever stands before it: it is
/// called through a function of the compiler's that is not marked to be inlined.
struct Search<'a, A> {
    view: View<'a>,
    entry: (u32, usize),
    query: &'a [i16],
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
        scratch.begin(view.rows.len(), expansion.max(1));
        let (links, vector) = (|moment| view.links(moment, 0), |moment| view.vector(moment));
        let soon = |moment| fetch(view.links(moment, 0));
        let next_is = |moment| {
            let links = view.links(moment, 0).iter().take_while(|link| **link != NO_LINK);
            links.for_each(|link| fetch(view.vector(*link)));
        };
        walk(query, &[at], scratch, links, vector, (soon, next_is), admits);
    }
}

/// Goes to a better neighbour for as long as there is one (greedy search with `ef` = 1).
// The upper levels are there to get near quickly, so one way is enough: what it misses, the wide walk on the ground finds.
#[inline(always)]
pub(super) fn descend<'a, L: AsRef<[u32]>>(
    query: &[i16],
    mut at: Scored,
    links: impl Fn(u32) -> L,
    vector: impl Fn(u32) -> &'a [i8],
) -> Scored {
    loop {
        let mut better = at;
        let links = links(at.moment());
        let links = links.as_ref().iter().take_while(|link| **link != NO_LINK);
        links.clone().for_each(|link| fetch(vector(*link)));
        for link in links {
            better = better.max(Scored::new(product(query, vector(*link)), *link));
        }
        if better == at {
            return at;
        }
        at = better;
    }
}

/// Best first from `entries` over `links`, keeping in `scratch.best` as many of the best that `admits` lets through as there is
/// room for (the paper's algorithm 2). `soon` is told of everybody whose links may be looked at, `next_is` of the one that most
/// likely comes next: to fetch what they have ahead.
#[inline(always)]
pub(super) fn walk<'a, L: AsRef<[u32]>>(
    query: &[i16],
    entries: &[Scored],
    scratch: &mut Scratch,
    links: impl Fn(u32) -> L,
    vector: impl Fn(u32) -> &'a [i8],
    (soon, next_is): (impl Fn(u32), impl Fn(u32)),
    admits: impl Fn(u32) -> bool,
) {
    for entry in entries {
        if scratch.meets(entry.moment()) {
            scratch.known.push(entry.moment());
            scratch.open.push(*entry);
            if admits(entry.moment()) {
                scratch.best.keep(*entry);
            }
        }
    }
    let mut new = [Scored::new(0, 0); GROUND_LINKS];
    while let Some(at) = scratch.open.pop() {
        // Everything still open is worse than this one: neighbours of what is worse than all that is kept are seldom better.
        if scratch.best.refuses(at) {
            break;
        }
        // First who is new, then all their products, then what becomes of them: the processor is told of all their vectors before it
        // needs the first, for in a large graph none of them lies in its cache; and while a graph is built, the links stand under a
        // lock that is not held by then.
        let mut count = 0;
        for link in links(at.moment()).as_ref() {
            // Room comes before `meets`, so that what finds none is not taken for met.
            let Some(slot) = new.get_mut(count) else { break };
            *slot = Scored::new(0, *link);
            count += usize::from(scratch.meets(*link));
        }
        let new = new.get_mut(..count).unwrap_or_default();
        scratch.known.extend(new.iter().map(|scored| scored.moment()));
        new.iter().for_each(|scored| fetch(vector(scored.moment())));
        // Most often who is open and best now is the next.
        if let Some(next) = scratch.open.peek() {
            next_is(next.moment());
        }
        for scored in new.iter_mut() {
            *scored = Scored::new(product(query, vector(scored.moment())), scored.moment());
        }
        for scored in new {
            if scratch.best.refuses(*scored) {
                continue;
            }
            // Whoever a filter refuses is walked over all the same: the moments it admits may be linked through it alone.
            soon(scored.moment());
            scratch.open.push(*scored);
            if admits(scored.moment()) {
                scratch.best.keep(*scored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_meets_everybody_once_and_the_next_one_again() {
        let mut scratch = Scratch::default();
        for _ in 0..3 {
            scratch.begin(130, 10);
            for moment in [0, 63, 64, 129] {
                assert!(scratch.meets(moment), "{moment}");
                scratch.known.push(moment);
                assert!(!scratch.meets(moment), "{moment}");
            }
            assert!(!scratch.meets(NO_LINK), "nobody is there");
        }
    }
}
