//! The layer on the CPU.

use rayon::prelude::*;

use super::cell::Before;
use super::{Layer, Sizes};
use crate::matrix::{Into, Matrix, Threads, product_into};

/// Numbers below which a step's pass over memory is not worth waking threads for.
const ENOUGH: usize = 1 << 13;
/// Multiplications below which a product is not, either.
const ENOUGH_PRODUCT: usize = 1 << 18;

fn threads(product: usize) -> Threads {
    if product < ENOUGH_PRODUCT { Threads::One } else { Threads::All }
}

/// The kept rows of every step. `weights` have the bias below them, and below that those of gates that see the memory.
pub(super) fn forward(layer: Layer, sizes: Sizes, given: &[f32], weights: &[f32], start: &[f32]) -> Vec<f32> {
    let Sizes { steps, batch, hidden } = sizes;
    let (gates, kept) = (layer.cell.gates() * hidden, layer.cell.kept() * hidden);
    let (weights, below) = weights.split_at(gates * hidden);
    let (bias, sees) = below.split_at(gates);
    // Turned once, so that no step's product has to.
    let mut turned = vec![0.0; weights.len()];
    for (gate, row) in weights.chunks_exact(hidden).enumerate() {
        turned.iter_mut().skip(gate).step_by(gates).zip(row).for_each(|(to, from)| *to = *from);
    }
    let mut rows = vec![0.0; steps * batch * kept];
    let (mut state, mut memory) = (start.to_vec(), vec![0.0; batch * hidden]);
    let mut remembered = vec![0.0; batch * gates];
    for (step, _) in layer.order(steps) {
        remembered.chunks_exact_mut(gates).for_each(|row| row.copy_from_slice(bias));
        product_into(
            Matrix::new(&state, batch, hidden, hidden, 1),
            Matrix::new(&turned, hidden, gates, gates, 1),
            &mut remembered,
            gates,
            Into::Add,
            threads(batch * gates * hidden),
        );
        let to = &mut rows[step * batch * kept..][..batch * kept];
        let given = &given[step * batch * gates..][..batch * gates];
        to.par_chunks_exact_mut(kept)
            .zip(given.par_chunks_exact(gates))
            .zip(remembered.par_chunks_exact(gates))
            .zip(state.par_chunks_exact_mut(hidden))
            .zip(memory.par_chunks_exact_mut(hidden))
            .with_min_len(ENOUGH.div_ceil(gates))
            .for_each(|((((to, given), remembered), state), memory)| {
                layer.cell.step(given, remembered, sees, state, memory, to);
                state.copy_from_slice(&to[kept - hidden..]);
            });
    }
    rows
}

/// Gradients before the gates of every step, then of the start. `weights` have below them the bias, the weights of gates that see the
/// memory, and the start.
pub(super) fn backward(layer: Layer, sizes: Sizes, kept: &[f32], gradient: &[f32], weights: &[f32]) -> Vec<f32> {
    let Sizes { steps, batch, hidden } = sizes;
    let (gates, width, parts) = (layer.cell.gates() * hidden, layer.cell.kept() * hidden, 4 * hidden);
    let (weights, below) = weights.split_at(gates * hidden);
    let (sees, start) = below[gates..].split_at(layer.cell.seeing() * hidden);
    let mut all = vec![0.0; steps * batch * parts + batch * hidden];
    let (mut pull, mut carry) = (vec![0.0; batch * hidden], vec![0.0; batch * hidden]);
    for (step, previous) in layer.order(steps).into_iter().rev() {
        let of_step = &gradient[step * batch * hidden..][..batch * hidden];
        let rows = &kept[step * batch * width..][..batch * width];
        let to = &mut all[step * batch * parts..][..batch * parts];
        to.par_chunks_exact_mut(parts)
            .zip(rows.par_chunks_exact(width))
            .zip(of_step.par_chunks_exact(hidden))
            .zip(pull.par_chunks_exact_mut(hidden))
            .zip(carry.par_chunks_exact_mut(hidden))
            .enumerate()
            .with_min_len(ENOUGH.div_ceil(gates))
            .for_each(|(item, ((((to, row), of_step), pull), carry))| {
                pull.iter_mut().zip(of_step).for_each(|(pull, of_step)| *pull += of_step);
                let before = match previous {
                    Some(previous) => {
                        let row = &kept[(previous * batch + item) * width..][..width];
                        Before { state: &row[width - hidden..], memory: Some(&row[width - 2 * hidden..width - hidden]) }
                    }
                    None => Before { state: &start[item * hidden..][..hidden], memory: None },
                };
                layer.cell.step_gradient(row, sees, before, pull, carry, to);
            });
        product_into(
            Matrix::new(to, batch, gates, parts, 1),
            Matrix::new(weights, gates, hidden, hidden, 1),
            &mut pull,
            hidden,
            Into::Replace,
            threads(batch * gates * hidden),
        );
    }
    if layer.cell == super::Cell::Gru {
        pull.iter_mut().zip(&carry).for_each(|(pull, carry)| *pull += carry);
    }
    all[steps * batch * parts..].copy_from_slice(&pull);
    all
}
