//! An LSTM that looks at the words of a query before every step, for networks that only answer.
//!
//! What the words would give to the gates is known before the first step, so a step is one product with the state and one pass
//! over the words.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::map::numbers;
use crate::matrix::{Into, Matrix, Threads, product_into};
use crate::softmax::row_in_place;
use crate::sums::{dot, tanh};
use crate::vectorised;

/// What an [`attend_and_recur`] reads. Everything has, side by side in its last axis, a part for the attention (`looking`
/// channels) and one for the gates (four times `hidden`: input, forget, cell, output).
#[derive(Debug, Clone, Copy)]
pub struct Attending<'a> {
    /// What each step gives, all biases included, `[steps, batch, looking + 4 hidden]`.
    pub steps: &'a Tensor,
    /// What each word gives, `[batch, words, looking + 4 hidden]`; the gates get the mean of the words by their weights.
    pub words: &'a Tensor,
    /// What the state gives, `[looking + 4 hidden, hidden]`.
    pub state: &'a Tensor,
    /// The weight of a word is the softmax over words of this times the hyperbolic tangent of all that was given, `[looking]`.
    pub score: &'a Tensor,
    /// `[batch, words]`, 1 where a word may be seen.
    pub seen: &'a Tensor,
}

/// The states after every step, `[steps, batch, hidden]`. No gradient goes through.
///
/// # Errors
/// When shapes do not fit each other.
pub fn attend_and_recur(given: Attending<'_>) -> Result<Tensor> {
    let sizes = Sizes::of(&given)?;
    if sizes.steps == 0 || sizes.batch == 0 || sizes.words == 0 {
        return Tensor::zeros((sizes.steps, sizes.batch, sizes.hidden), given.steps.dtype(), given.steps.device());
    }
    // An operation takes three tensors: which words are seen stands before what they give, the score below the state's weights.
    let words = Tensor::cat(&[&given.seen.unsqueeze(2)?, given.words], 2)?.contiguous()?.detach();
    let state = given.state.flatten_all()?;
    let weights = Tensor::cat(&[&state, given.score], 0)?.detach();
    given.steps.detach().contiguous()?.apply_op3_no_bwd(&words, &weights, &Layer { sizes })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) words: usize,
    pub(super) looking: usize,
    pub(super) hidden: usize,
}

impl Sizes {
    fn of(given: &Attending) -> Result<Self> {
        let ((steps, batch, width), (of_words, words, word_width)) = (given.steps.dims3()?, given.words.dims3()?);
        let (looking, hidden) = (given.score.elem_count(), given.state.dim(1)?);
        let fits = width == looking + 4 * hidden && word_width == width && of_words == batch;
        if !fits || given.state.dims() != [width, hidden] || given.seen.dims() != [batch, words] {
            bail!(
                "steps {:?}, words {:?}, state {:?}, score {looking} and seen {:?} do not fit each other",
                given.steps.dims(),
                given.words.dims(),
                given.state.dims(),
                given.seen.dims()
            );
        }
        Ok(Self { steps, batch, words, looking, hidden })
    }

    pub(super) fn width(&self) -> usize {
        self.looking + 4 * self.hidden
    }
}

struct Layer {
    sizes: Sizes,
}

impl CustomOp3 for Layer {
    fn name(&self) -> &'static str {
        "attend-and-recur"
    }

    fn cpu_fwd(
        &self,
        steps: &CpuStorage,
        steps_layout: &Layout,
        words: &CpuStorage,
        words_layout: &Layout,
        weights: &CpuStorage,
        weights_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Sizes { steps: count, batch, hidden, .. } = self.sizes;
        let (steps, words) = (numbers(steps, steps_layout)?, numbers(words, words_layout)?);
        let states = on_cpu(&self.sizes, steps, words, numbers(weights, weights_layout)?);
        Ok((CpuStorage::F32(states), Shape::from((count, batch, hidden))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        steps: &candle_core::CudaStorage,
        steps_layout: &Layout,
        words: &candle_core::CudaStorage,
        words_layout: &Layout,
        weights: &candle_core::CudaStorage,
        weights_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        super::cuda::attending(&self.sizes, (steps, steps_layout), (words, words_layout), (weights, weights_layout))
    }
}

fn on_cpu(sizes: &Sizes, steps: &[f32], words: &[f32], weights: &[f32]) -> Vec<f32> {
    let (Sizes { batch, words: count, hidden, looking, .. }, width) = (*sizes, sizes.width());
    let (weights, score) = weights.split_at(width * hidden);
    let mut states = vec![0f32; sizes.steps * batch * hidden];
    let mut given = vec![0f32; batch * width];
    let mut memory = vec![0f32; batch * hidden];
    for step in 0..sizes.steps {
        given.copy_from_slice(&steps[step * batch * width..][..batch * width]);
        let (before, rest) = states.split_at_mut(step * batch * hidden);
        if step > 0 {
            let threads = if batch * width * hidden < 1 << 18 { Threads::One } else { Threads::All };
            product_into(
                Matrix::new(&before[(step - 1) * batch * hidden..], batch, hidden, hidden, 1),
                Matrix::new(weights, hidden, width, 1, hidden),
                &mut given,
                width,
                Into::Add,
                threads,
            );
        }
        rest[..batch * hidden]
            .par_chunks_exact_mut(hidden)
            .zip(given.par_chunks_exact_mut(width))
            .zip(memory.par_chunks_exact_mut(hidden))
            .zip(words.par_chunks_exact(count * (width + 1)))
            .for_each(|(((state, given), memory), words)| {
                let (query, gates) = given.split_at_mut(looking);
                let (mut shares, mut bent) = (vec![0f32; count], vec![0f32; looking]);
                vectorised(
                    #[inline(always)]
                    || {
                        for (share, word) in shares.iter_mut().zip(words.chunks_exact(width + 1)) {
                            for (bent, (query, word)) in bent.iter_mut().zip(query.iter().zip(&word[1..])) {
                                *bent = tanh(query + word);
                            }
                            *share = if word[0] > 0.0 { dot(score, &bent) } else { -1e30 };
                        }
                        row_in_place(&mut shares);
                        for (share, word) in shares.iter().zip(words.chunks_exact(width + 1)) {
                            for (gate, word) in gates.iter_mut().zip(&word[1 + looking..]) {
                                *gate += share * word;
                            }
                        }
                        for n in 0..hidden {
                            let squash = |number: usize| 0.5 + 0.5 * tanh(0.5 * gates[number * hidden + n]);
                            memory[n] = squash(1) * memory[n] + squash(0) * tanh(gates[2 * hidden + n]);
                            state[n] = squash(3) * tanh(memory[n]);
                        }
                    },
                );
            });
    }
    states
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;
    use crate::against::{assert_close, devices, draw};

    /// By plain loops in double precision.
    fn loops(sizes: &Sizes, steps: &[f32], words: &[f32], state: &[f32], score: &[f32], seen: &[f32]) -> Vec<f64> {
        let (Sizes { steps: count, batch, words: length, looking, hidden }, width) = (*sizes, sizes.width());
        let mut states = vec![0f64; count * batch * hidden];
        let mut memory = vec![0f64; batch * hidden];
        for (step, item) in (0..count).flat_map(|step| (0..batch).map(move |item| (step, item))) {
            let given = |channel: usize| {
                let earlier = |n: usize| if step == 0 { 0.0 } else { states[((step - 1) * batch + item) * hidden + n] };
                let product = (0..hidden).map(|n| f64::from(state[channel * hidden + n]) * earlier(n)).sum::<f64>();
                f64::from(steps[(step * batch + item) * width + channel]) + product
            };
            let given: Vec<f64> = (0..width).map(given).collect();
            let of_word = |word: usize, channel: usize| f64::from(words[(item * length + word) * width + channel]);
            let logit = |word: usize| {
                let term = |n: usize| f64::from(score[n]) * (given[n] + of_word(word, n)).tanh();
                if seen[item * length + word] > 0.0 { (0..looking).map(term).sum() } else { -1e30 }
            };
            let logits: Vec<f64> = (0..length).map(logit).collect();
            let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logits.iter().map(|logit| (logit - most).exp()).sum();
            let gate = |number: usize, n: usize| {
                let channel = looking + number * hidden + n;
                let seen: f64 =
                    (0..length).map(|word| (logits[word] - most).exp() / total * of_word(word, channel)).sum();
                given[channel] + seen
            };
            let squash = |x: f64| 1.0 / (1.0 + (-x).exp());
            for n in 0..hidden {
                let memory = &mut memory[item * hidden + n];
                *memory = squash(gate(1, n)) * *memory + squash(gate(0, n)) * gate(2, n).tanh();
                states[(step * batch + item) * hidden + n] = squash(gate(3, n)) * memory.tanh();
            }
        }
        states
    }

    #[test]
    fn states_are_those_of_plain_loops() {
        let rng = &mut Rng::new(12);
        for (steps, batch, words, looking, hidden) in [
            (1, 1, 1, 1, 1),
            (5, 2, 3, 7, 4),
            (9, 3, 40, 33, 70),
            (7, 2, 15, 512, 512),
            (6, 1, 5, 600, 520),
            (4, 5, 3, 9, 8),
        ] {
            let sizes = Sizes { steps, batch, words, looking, hidden };
            let width = sizes.width();
            let scaled =
                |rng: &mut Rng, count: usize| -> Vec<f32> { draw(rng, count).iter().map(|x| x * 0.3).collect() };
            let (given, of_words) = (draw(rng, steps * batch * width), draw(rng, batch * words * width));
            let (state, score) = (scaled(rng, width * hidden), draw(rng, looking));
            // The last word of the first item is padding, unless it is its only one.
            let seen: Vec<f32> =
                (0..batch * words).map(|n| if n + 1 == words && words > 1 { 0.0 } else { 1.0 }).collect();
            let wanted = loops(&sizes, &given, &of_words, &state, &score, &seen);
            for device in devices() {
                let on = |values: &[f32], shape: &[usize]| Tensor::from_slice(values, shape, &device).unwrap();
                let found = attend_and_recur(Attending {
                    steps: &on(&given, &[steps, batch, width]),
                    words: &on(&of_words, &[batch, words, width]),
                    state: &on(&state, &[width, hidden]),
                    score: &on(&score, &[looking]),
                    seen: &on(&seen, &[batch, words]),
                });
                assert_close(&found.unwrap(), &wanted, 1e-4, &format!("{sizes:?} on {device:?}"));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, candle_core::DType::F32, &candle_core::Device::Cpu).unwrap();
        let (steps, words, state, score) = (zeros(&[2, 1, 14]), zeros(&[1, 3, 14]), zeros(&[14, 3]), zeros(&[2]));
        let seen = zeros(&[1, 4]);
        let given = Attending { steps: &steps, words: &words, state: &state, score: &score, seen: &seen };
        assert!(attend_and_recur(given).unwrap_err().to_string().contains("seen [1, 4] do not fit"));
    }
}
