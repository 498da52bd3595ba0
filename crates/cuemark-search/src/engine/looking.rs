//! The nearest moments of a log: all of them looked at, or those that a graph proposes.

use rayon::prelude::*;

use super::ahead::fetch;
use super::following::State;
use super::graph::{Graph, Proposed};
use super::snapshot::{Put, Snapshot};
use super::{Hit, Nearest, rank};
use crate::Embedding;
use crate::embedding::dot_of_halves;

/// What a cosine cannot exceed, with room for the rounding of halves.
const LARGEST: f32 = 1.01;
/// Candidates whose numbers the processor fetches from the log at once.
const TOGETHER: usize = 16;

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
    let expansion = expansion.max(ask.count);
    let proposed = if state.all_found && ask.filter.is_everywhere() {
        // Whose moment it is need not be looked up for each that a walk meets, which is a fifth of its time.
        graph.nearest(query.numbers(), expansion, |_| true)
    } else {
        let admitted: Vec<bool> =
            snapshot.puts.iter().map(|put| put.is_found() && ask.filter.admits(&put.entry)).collect();
        let within = ask.filter.within.is_some();
        let admits = |row: usize| {
            snapshot.place_of(row).is_some_and(|place| admitted.get(place).copied().unwrap_or(false))
                && (!within
                    || snapshot.put_of(row).is_some_and(|(_, put)| ask.filter.admits_span(snapshot.span(put, row))))
        };
        graph.nearest(query.numbers(), expansion, admits)
    };
    let best = best(scored_again(snapshot, query, &proposed, ask.count), ask.count);
    best.into_iter().filter_map(|(row, score)| Some(hit(snapshot, snapshot.put_of(row)?.1, row, score))).collect()
}

/// Scores of the log's numbers for those of `proposed`, best first, that may be among the `count` best.
// Eight bits put the best among the first few, where moments lie apart; where they lie close, among many. So it goes on until nobody who is
// left can come so far.
fn scored_again(snapshot: &Snapshot, query: &Embedding, proposed: &[Proposed], count: usize) -> Vec<(usize, f32)> {
    let mut scored: Vec<(usize, f32)> = Vec::with_capacity(proposed.len());
    let mut least = f32::NEG_INFINITY;
    for part in proposed.chunks(TOGETHER) {
        if part.first().is_some_and(|first| first.at_most < least) {
            break;
        }
        part.iter().for_each(|proposed| fetch(snapshot.vector(proposed.row)));
        let score = |proposed: &Proposed| (proposed.row, cosine(snapshot.vector(proposed.row), query));
        scored.extend(part.iter().map(score));
        scored = best(scored, count);
        if scored.len() >= count {
            least = scored.iter().fold(f32::INFINITY, |least, (_, score)| least.min(*score));
        }
    }
    scored
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
    halves.chunks_exact(width.max(1)).map(|row| cosine(row, query)).collect()
}

/// The product of two vectors of length 1; the least there is where the stored one is damaged and gives more than that, so that
/// it does not push itself into every answer before somebody verifies the log.
fn cosine(stored: &[half::f16], query: &Embedding) -> f32 {
    let product = dot_of_halves(query.numbers(), stored);
    if product.abs() <= LARGEST { product } else { -1.0 }
}
