//! The nearest moments of a log: all of them looked at, or those that a graph proposes.

use rayon::prelude::*;

use super::following::State;
use super::graph::Graph;
use super::snapshot::{Put, Snapshot, widen};
use super::{Hit, Nearest, rank};
use crate::{Embedding, dot};

/// What a cosine cannot exceed, with room for the rounding of halves.
const LARGEST: f32 = 1.01;
/// Candidates per wanted moment that are scored again with the log's numbers.
const RESCORED: usize = 4;
/// The fewest candidates that are.
const LEAST_RESCORED: usize = 40;

fn hit(snapshot: &Snapshot, put: &Put, row: usize, score: f32) -> Hit {
    let place = row.checked_sub(put.first_row);
    Hit { place, ..Hit::new(put.entry.id.clone(), snapshot.span(put, row), score) }
}

/// Scores every admitted moment at or after `first_row`.
pub(super) fn look_at_all(snapshot: &Snapshot, query: &Embedding, ask: &Nearest, first_row: usize) -> Vec<Hit> {
    let width = snapshot.width();
    let puts: Vec<&Put> = snapshot
        .puts
        .iter()
        .filter(|put| put.first_row + put.rows > first_row && put.is_found() && ask.filter.admits(&put.entry))
        .collect();
    let best_of = |put: &&Put| {
        let scored = (put.first_row..).zip(scores(snapshot.vectors(put), width, query));
        let admitted = scored.filter(|(row, _)| *row >= first_row && ask.filter.admits_span(snapshot.span(put, *row)));
        let best = best(admitted.collect(), ask.count);
        best.into_iter().map(|(row, score)| hit(snapshot, put, row, score)).collect::<Vec<_>>()
    };
    let mut hits: Vec<Hit> = puts.par_iter().flat_map_iter(best_of).collect();
    rank(&mut hits, ask.count);
    hits
}

/// What the graph proposes, scored with the log's numbers.
pub(super) fn through_graph(
    graph: &Graph,
    state: &State,
    query: &Embedding,
    ask: &Nearest,
    expansion: usize,
) -> Vec<Hit> {
    let snapshot = &state.snapshot;
    // Eight bits put the best among the first few; only those are worth a look into the log.
    let sizes = ((RESCORED * ask.count).max(LEAST_RESCORED), expansion.max(ask.count));
    let proposed = if state.all_found && ask.filter.is_everywhere() {
        // Whose moment it is need not be looked up for each that a walk meets, which is a fifth of its time.
        graph.nearest(query.numbers(), sizes, |_| true)
    } else {
        let admitted: Vec<bool> =
            snapshot.puts.iter().map(|put| put.is_found() && ask.filter.admits(&put.entry)).collect();
        let within = ask.filter.within.is_some();
        let admits = |row: usize| {
            snapshot.place_of(row).is_some_and(|place| admitted.get(place).copied().unwrap_or(false))
                && (!within
                    || snapshot.put_of(row).is_some_and(|(_, put)| ask.filter.admits_span(snapshot.span(put, row))))
        };
        graph.nearest(query.numbers(), sizes, admits)
    };
    let mut buffer = vec![0f32; snapshot.width()];
    let score = |row: usize| {
        widen(snapshot.vector(row), &mut buffer);
        (row, cosine(&buffer, query))
    };
    let best = best(proposed.into_iter().map(score).collect(), ask.count);
    best.into_iter().filter_map(|(row, score)| Some(hit(snapshot, snapshot.put_of(row)?.1, row, score))).collect()
}

/// The `count` best of numbered scores in no promised order, and all that tie with the last of them.
fn best(mut scored: Vec<(usize, f32)>, count: usize) -> Vec<(usize, f32)> {
    if count == 0 {
        return Vec::new();
    }
    if scored.len() > count {
        let (_, &mut (_, least), _) = scored.select_nth_unstable_by(count - 1, |a, b| b.1.total_cmp(&a.1));
        scored.retain(|(_, score)| *score >= least);
    }
    scored
}

/// The product of every row of `halves` with the query, in order.
pub(super) fn scores(halves: &[half::f16], width: usize, query: &Embedding) -> Vec<f32> {
    let mut buffer = vec![0f32; width];
    let score = |row: &[half::f16]| {
        widen(row, &mut buffer);
        cosine(&buffer, query)
    };
    halves.chunks_exact(width.max(1)).map(score).collect()
}

/// The product of two vectors of length 1; the least there is where the stored one is damaged and gives more than that, so that
/// it does not push itself into every answer before somebody verifies the log.
fn cosine(stored: &[f32], query: &Embedding) -> f32 {
    let product = dot(stored, query.numbers());
    if product.abs() <= LARGEST { product } else { -1.0 }
}
