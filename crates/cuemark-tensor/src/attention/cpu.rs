//! The operation on the CPU: a batch's items side by side, the heads of one after the other.

use rayon::prelude::*;

use super::{Bias, Sizes};
use crate::dropout::Dropout;
use crate::matrix::{Into, Matrix, Threads, product_into};
use crate::sums::dot;
use crate::vectorised;

/// The fewest and the most queries that one task answers.
const QUERIES: [usize; 2] = [16, 128];
/// Tasks that threads share even when there is one item.
const TASKS: usize = 4;

/// Queries that one task answers: the same for any number of threads, since the last bits of a product depend on it.
fn of_task(sizes: &Sizes) -> usize {
    let [fewest, most] = QUERIES;
    sizes.queries.div_ceil(TASKS.div_ceil(sizes.batch)).clamp(fewest, most)
}

/// One head of one item, from query `first` on.
#[derive(Clone, Copy)]
struct At {
    item: usize,
    head: usize,
    first: usize,
    count: usize,
}

/// `[rows, heads width]` of one item as the matrix of one head.
fn of_head(x: &[f32], rows: usize, heads: usize, width: usize, head: usize) -> Matrix<'_> {
    Matrix::new(&x[head * width..], rows, width, heads * width, 1)
}

/// The weights of the queries at `at`, before dropout.
fn weigh(sizes: &Sizes, q: &[f32], k: &[f32], bias: Bias, at: At, to: &mut [f32]) {
    let Sizes { heads, keys, width, .. } = *sizes;
    let queries = Matrix::new(&q[at.first * heads * width + at.head * width..], at.count, width, heads * width, 1);
    let turned = Matrix::new(&k[at.head * width..], width, keys, 1, heads * width);
    product_into(queries, turned, to, keys, Into::Replace, Threads::One);
    let scale = sizes.scale();
    vectorised(
        #[inline(always)]
        || {
            for (row, logits) in to.chunks_exact_mut(keys).enumerate() {
                match bias {
                    Some((bias, [by_item, by_head, by_query])) => {
                        let from = at.item * by_item + at.head * by_head + (at.first + row) * by_query;
                        for (logit, bias) in logits.iter_mut().zip(&bias[from..][..keys]) {
                            *logit = *logit * scale + bias;
                        }
                    }
                    None => logits.iter_mut().for_each(|logit| *logit *= scale),
                }
                crate::softmax::row_in_place(logits);
            }
        },
    );
}

/// The place of the first weight of a query among all, as dropout counts them.
fn place(sizes: &Sizes, at: At) -> u64 {
    (((at.item * sizes.heads + at.head) * sizes.queries + at.first) * sizes.keys) as u64
}

fn drop_some(dropout: Option<Dropout>, first: u64, weights: &mut [f32]) {
    if let Some(dropout) = dropout {
        vectorised(
            #[inline(always)]
            || weights.iter_mut().zip(first..).for_each(|(weight, place)| *weight *= dropout.factor(place)),
        );
    }
}

pub(super) fn forward(sizes: &Sizes, [q, k, v]: [&[f32]; 3], bias: Bias, dropout: Option<Dropout>) -> Vec<f32> {
    let Sizes { batch, heads, queries, keys, width, values } = *sizes;
    let (mut y, of_task) = (vec![0f32; batch * queries * heads * values], of_task(sizes));
    y.par_chunks_mut(queries * heads * values).enumerate().for_each(|(item, y)| {
        let q = &q[item * queries * heads * width..][..queries * heads * width];
        let k = &k[item * keys * heads * width..][..keys * heads * width];
        let v = &v[item * keys * heads * values..][..keys * heads * values];
        y.par_chunks_mut(of_task * heads * values).enumerate().for_each(|(block, y)| {
            let (first, count) = (block * of_task, y.len() / (heads * values));
            let mut weights = vec![0f32; count * keys];
            for head in 0..heads {
                let at = At { item, head, first, count };
                weigh(sizes, q, k, bias, at, &mut weights);
                drop_some(dropout, place(sizes, at), &mut weights);
                product_into(
                    Matrix::new(&weights, count, keys, keys, 1),
                    of_head(v, keys, heads, values, head),
                    &mut y[head * values..],
                    heads * values,
                    Into::Replace,
                    Threads::One,
                );
            }
        });
    });
    y
}

/// Gradients of queries, keys and values, one after the other.
pub(super) fn backward(
    sizes: &Sizes,
    [q, k, v]: [&[f32]; 3],
    gradient: &[f32],
    bias: Bias,
    dropout: Option<Dropout>,
) -> Vec<f32> {
    let Sizes { heads, queries, keys, width, values, .. } = *sizes;
    let [of_q, of_k, of_v] = sizes.numbers();
    let mut all = vec![0f32; of_q + of_k + of_v];
    let (to_q, rest) = all.split_at_mut(of_q);
    let (to_k, to_v) = rest.split_at_mut(of_k);
    let (q_item, k_item, v_item) = (queries * heads * width, keys * heads * width, keys * heads * values);
    let to = to_q.par_chunks_mut(q_item).zip(to_k.par_chunks_mut(k_item)).zip(to_v.par_chunks_mut(v_item));
    to.enumerate().for_each(|(item, ((to_q, to_k), to_v))| {
        let (q, k) = (&q[item * q_item..][..q_item], &k[item * k_item..][..k_item]);
        let v = &v[item * v_item..][..v_item];
        let gradient = &gradient[item * queries * heads * values..][..queries * heads * values];
        let (mut weights, mut pull) = (vec![0f32; queries * keys], vec![0f32; queries * keys]);
        let mut dropped = vec![0f32; if dropout.is_some() { queries * keys } else { 0 }];
        for head in 0..heads {
            let at = At { item, head, first: 0, count: queries };
            let seen = of_head(gradient, queries, heads, values, head);
            weigh(sizes, q, k, bias, at, &mut weights);
            // What the weights gave: to the values, through what was left of them.
            let turned = Matrix::new(&v[head * values..], values, keys, 1, heads * values);
            product_into(seen, turned, &mut pull, keys, Into::Replace, Threads::One);
            drop_some(dropout, place(sizes, at), &mut pull);
            let left = if dropout.is_some() {
                dropped.copy_from_slice(&weights);
                drop_some(dropout, place(sizes, at), &mut dropped);
                &dropped
            } else {
                &weights
            };
            product_into(
                Matrix::new(left, keys, queries, 1, keys),
                seen,
                &mut to_v[head * values..],
                heads * values,
                Into::Replace,
                Threads::One,
            );
            before_softmax(&weights, &mut pull, keys, sizes.scale());
            product_into(
                Matrix::new(&pull, queries, keys, keys, 1),
                of_head(k, keys, heads, width, head),
                &mut to_q[head * width..],
                heads * width,
                Into::Replace,
                Threads::One,
            );
            product_into(
                Matrix::new(&pull, keys, queries, 1, keys),
                of_head(q, queries, heads, width, head),
                &mut to_k[head * width..],
                heads * width,
                Into::Replace,
                Threads::One,
            );
        }
    });
    all
}

/// `pull` of the weights becomes that of the logits before their scale.
fn before_softmax(weights: &[f32], pull: &mut [f32], keys: usize, scale: f32) {
    vectorised(
        #[inline(always)]
        || {
            for (weights, pull) in weights.chunks_exact(keys).zip(pull.chunks_exact_mut(keys)) {
                let common = dot(weights, pull);
                for (pull, weight) in pull.iter_mut().zip(weights) {
                    *pull = scale * weight * (*pull - common);
                }
            }
        },
    );
}
