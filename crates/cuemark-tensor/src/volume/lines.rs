//! Reading a volume line by line on the CPU.

use rayon::prelude::*;

use super::window::Placed;
use crate::vectorised;

/// One item with zeros around its pictures, so that windows may be read off without asking where the edge is; times are
/// not padded.
///
/// Numbers past the last picture are there so that the last line may be read as if it were followed by another.
pub(super) fn padded(x: &[f32], placed: &Placed, channels: usize) -> Vec<f32> {
    let [times, height, width] = placed.input;
    let (high, wide) = (placed.padded(1), placed.padded(2));
    let [_, top, left] = placed.before;
    let mut to = vec![0.0; (times * high * wide + placed.window.kernel[2]) * channels];
    to.par_chunks_mut(high * wide * channels).zip(x.par_chunks(height * width * channels)).for_each(|(to, x)| {
        // Strides may leave the last lines or columns unread.
        let lines = to.chunks_mut(wide * channels).skip(top).zip(x.chunks(width * channels));
        for (to, line) in lines {
            let numbers = width.min(wide - left) * channels;
            to[left * channels..][..numbers].copy_from_slice(&line[..numbers]);
        }
    });
    to
}

/// Adds `bias` and keeps every number inside `low` and `high`, row by row.
pub(super) fn finish(from: &[f32], bias: &[f32], (low, high): (f32, f32), to: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (to, from) in to.chunks_exact_mut(bias.len()).zip(from.chunks_exact(bias.len())) {
                for ((to, from), bias) in to.iter_mut().zip(from).zip(bias) {
                    *to = (from + bias).max(low).min(high);
                }
            }
        },
    );
}

/// Numbers that one task adds.
const ADDED: usize = 1 << 14;

/// Adds number by number and keeps every sum inside `low` and `high`.
pub(super) fn add_here(to: &mut [f32], past: &[f32], (low, high): (f32, f32)) {
    to.par_chunks_mut(ADDED).zip(past.par_chunks(ADDED)).for_each(|(to, past)| {
        vectorised(
            #[inline(always)]
            || to.iter_mut().zip(past).for_each(|(to, past)| *to = (*to + past).max(low).min(high)),
        );
    });
}

/// [`finish`] of numbers where they are.
pub(super) fn finish_here(to: &mut [f32], bias: &[f32], (low, high): (f32, f32)) {
    vectorised(
        #[inline(always)]
        || {
            for to in to.chunks_exact_mut(bias.len()) {
                for (to, bias) in to.iter_mut().zip(bias) {
                    *to = (*to + bias).max(low).min(high);
                }
            }
        },
    );
}
