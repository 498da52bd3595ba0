//! When each piece was said: where the decoder looked while it said it.
//!
//! Some heads of the cross attention follow the sound. Their weights, normalised over the pieces, smoothed over time and averaged,
//! make a map of pieces and steps of 0.02 s; the cheapest path through it that never goes back says when each piece begins (dynamic
//! time warping, as in Whisper's own word times).

/// Steps over which weights are smoothed.
const SMOOTH: usize = 7;

/// Weights of one head: a row of `steps` for each piece.
pub(crate) struct Attention {
    /// Head by head, piece by piece.
    pub(crate) weights: Vec<f32>,
    pub(crate) heads: usize,
    pub(crate) pieces: usize,
    pub(crate) steps: usize,
}

/// How well each step fits each piece: `[pieces, steps]`, the more the better.
pub(crate) fn map(attention: &mut Attention) -> Vec<f32> {
    let &mut Attention { ref mut weights, heads, pieces, steps } = attention;
    let mut sum = vec![0f32; pieces * steps];
    for head in weights.chunks_exact_mut((pieces * steps).max(1)).take(heads) {
        for step in 0..steps {
            let column = || (0..pieces).map(|piece| head[piece * steps + step]);
            let mean = column().sum::<f32>() / pieces as f32;
            let spread = (column().map(|weight| (weight - mean).powi(2)).sum::<f32>() / pieces as f32).sqrt().max(1e-9);
            (0..pieces).for_each(|piece| {
                let weight = &mut head[piece * steps + step];
                *weight = (*weight - mean) / spread;
            });
        }
        for (row, sum) in head.chunks_exact(steps).zip(sum.chunks_exact_mut(steps)) {
            median(row, sum);
        }
    }
    sum.iter_mut().for_each(|value| *value /= heads.max(1) as f32);
    sum
}

/// Adds the median of every step and its neighbours, edges mirrored.
fn median(row: &[f32], to: &mut [f32]) {
    let (half, last) = (SMOOTH / 2, row.len().saturating_sub(1));
    let mut near = [0f32; SMOOTH];
    for (step, to) in to.iter_mut().enumerate() {
        for (at, value) in near.iter_mut().enumerate() {
            let from = (step + at).abs_diff(half);
            *value = row[if from > last { (2 * last).saturating_sub(from) } else { from }];
        }
        near.sort_unstable_by(f32::total_cmp);
        *to += near[half];
    }
}

/// The step at which each piece begins: where the cheapest path through `[pieces, steps]` first comes to its row.
pub(crate) fn begins(map: &[f32], pieces: usize, steps: usize) -> Vec<usize> {
    if pieces == 0 || steps == 0 {
        return vec![0; pieces];
    }
    // One row and column more than the map, so that every cell has three before it.
    let width = steps + 1;
    let mut cost = vec![f32::INFINITY; (pieces + 1) * width];
    let mut from = vec![Move::Both; (pieces + 1) * width];
    cost[0] = 0.0;
    for piece in 1..=pieces {
        for step in 1..=steps {
            let at = piece * width + step;
            let (both, down, along) = (cost[at - width - 1], cost[at - width], cost[at - 1]);
            let (least, way) = if both <= down && both <= along {
                (both, Move::Both)
            } else if down <= along {
                (down, Move::Piece)
            } else {
                (along, Move::Step)
            };
            cost[at] = least - map[(piece - 1) * steps + step - 1];
            from[at] = way;
        }
    }
    let mut begins = vec![0; pieces];
    let (mut piece, mut step) = (pieces, steps);
    while piece > 0 {
        begins[piece - 1] = step.saturating_sub(1);
        match from[piece * width + step] {
            Move::Both => (piece, step) = (piece - 1, step.saturating_sub(1)),
            Move::Piece => piece -= 1,
            Move::Step => step -= 1,
        }
        // The first column and row lead straight to the corner.
        if step == 0 {
            begins[..piece].fill(0);
            break;
        }
    }
    begins
}

#[derive(Clone, Copy)]
enum Move {
    Both,
    Piece,
    Step,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_follows_what_fits() {
        // Three pieces said at steps 0-1, 2-5 and 6-7.
        let mut map = vec![0f32; 3 * 8];
        for (piece, steps) in [0..2, 2..6, 6..8].into_iter().enumerate() {
            steps.for_each(|step| map[piece * 8 + step] = 1.0);
        }
        assert_eq!(begins(&map, 3, 8), [0, 2, 6]);
    }

    #[test]
    fn more_pieces_than_steps_and_nothing_at_all_have_a_path_too() {
        assert_eq!(begins(&[1.0, 1.0, 1.0], 3, 1), [0, 0, 0]);
        assert_eq!(begins(&[], 0, 8), [0usize; 0]);
        assert_eq!(begins(&[], 2, 0), [0, 0]);
    }

    #[test]
    fn a_median_forgets_a_spike_and_keeps_an_edge() {
        let mut to = vec![0f32; 12];
        median(&[0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], &mut to);
        assert_eq!(to, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn weights_are_compared_between_pieces_not_between_steps() {
        // Step 2 is looked at by all; only what differs between pieces may count.
        let weights = vec![0.5, 0.1, 0.4, 0.1, 0.5, 0.4];
        let mut attention = Attention { weights, heads: 1, pieces: 2, steps: 3 };
        let map = map(&mut attention);
        assert!(map[2].abs() < 1e-3 && map[5].abs() < 1e-3, "{map:?}");
    }
}
