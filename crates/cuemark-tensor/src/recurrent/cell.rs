//! What happens to one item in one step.

use candle_core::{D, Result, Tensor};

use crate::sums::tanh;
use crate::vectorised;

/// The kinds of recurrent layers, with PyTorch's order of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Long short-term memory: input, forget, cell, output.
    Lstm,
    /// As that, its input, forget and output gates seeing the memory through one weight per channel.
    Peephole,
    /// Gated recurrent unit: reset, update, new.
    Gru,
}

/// Gates that see the memory, of a [`Cell::Peephole`].
const SEEING_GATES: usize = 3;

impl Cell {
    /// How many gates there are.
    pub fn gates(self) -> usize {
        match self {
            Self::Lstm | Self::Peephole => 4,
            Self::Gru => 3,
        }
    }

    /// Rows of weights for gates that see the memory: input, forget, output.
    pub(super) fn seeing(self) -> usize {
        if self == Self::Peephole { SEEING_GATES } else { 0 }
    }

    /// How many parts of the hidden width a step keeps for its gradient: an LSTM its four gates, its memory and its state; a GRU
    /// its three gates, what the state gave to the last of them, and its state. The state comes last.
    pub(super) fn kept(self) -> usize {
        match self {
            Self::Lstm | Self::Peephole => 6,
            Self::Gru => 5,
        }
    }

    /// The states among kept rows.
    pub(super) fn state_of(self, kept: &Tensor) -> Result<Tensor> {
        let hidden = kept.dim(D::Minus1)? / self.kept();
        kept.narrow(D::Minus1, (self.kept() - 1) * hidden, hidden)
    }

    /// Writes what one item keeps of a step.
    ///
    /// `sees` are the weights of gates that see the memory. `memory` is an LSTM's before the step and after it; `state` the one
    /// before.
    pub(super) fn step(
        self,
        given: &[f32],
        remembered: &[f32],
        sees: &[f32],
        state: &[f32],
        memory: &mut [f32],
        kept: &mut [f32],
    ) {
        vectorised(
            #[inline(always)]
            || match self {
                Self::Lstm => lstm::<false>(given, remembered, sees, memory, kept),
                Self::Peephole => lstm::<true>(given, remembered, sees, memory, kept),
                Self::Gru => gru(given, remembered, state, kept),
            },
        );
    }

    /// Writes the gradients before the gates' squashing of one item and step, four parts; the gates' first.
    ///
    /// `before` is what the step before kept, with the start's state where there is none. `pull` is the gradient of the state.
    /// `carry` goes from step to step past the products: an LSTM's gradient of its memory, a GRU's of its state.
    pub(super) fn step_gradient(
        self,
        kept: &[f32],
        sees: &[f32],
        before: Before,
        pull: &[f32],
        carry: &mut [f32],
        to: &mut [f32],
    ) {
        vectorised(
            #[inline(always)]
            || match self {
                Self::Lstm => lstm_gradient::<false>(kept, sees, before, pull, carry, to),
                Self::Peephole => lstm_gradient::<true>(kept, sees, before, pull, carry, to),
                Self::Gru => gru_gradient(kept, before, pull, carry, to),
            },
        );
    }
}

// Loops over the channels of one item, inlined into code for the machine's widest instructions. Slices are cut to one length first, so
// that the compiler sees that no index leaves them.

/// `N` slices of `hidden` numbers.
#[inline(always)]
fn split<const N: usize>(all: &[f32], hidden: usize) -> [&[f32]; N] {
    std::array::from_fn(|part| &all[part * hidden..][..hidden])
}

/// The same, to write to.
#[inline(always)]
fn split_mut<const N: usize>(all: &mut [f32], hidden: usize) -> [&mut [f32]; N] {
    let mut rest = all;
    std::array::from_fn(|_| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(hidden);
        rest = after;
        part
    })
}

#[inline(always)]
fn lstm<const SEEING: bool>(given: &[f32], remembered: &[f32], sees: &[f32], memory: &mut [f32], kept: &mut [f32]) {
    let hidden = memory.len();
    let (given, remembered) = (split::<4>(given, hidden), split::<4>(remembered, hidden));
    let sees = if SEEING { split::<SEEING_GATES>(sees, hidden) } else { [given[0]; SEEING_GATES] };
    let [input, forget, new, output, after, state] = split_mut::<6>(kept, hidden);
    for n in 0..hidden {
        let gate = |number: usize| given[number][n] + remembered[number][n];
        let seen = |number: usize, memory: f32| if SEEING { sees[number][n] * memory } else { 0.0 };
        input[n] = sigmoid(gate(0) + seen(0, memory[n]));
        forget[n] = sigmoid(gate(1) + seen(1, memory[n]));
        new[n] = tanh(gate(2));
        memory[n] = forget[n] * memory[n] + input[n] * new[n];
        output[n] = sigmoid(gate(3) + seen(2, memory[n]));
        after[n] = memory[n];
        state[n] = output[n] * tanh(memory[n]);
    }
}

#[inline(always)]
fn gru(given: &[f32], remembered: &[f32], state: &[f32], kept: &mut [f32]) {
    let hidden = state.len();
    let (given, remembered) = (split::<3>(given, hidden), split::<3>(remembered, hidden));
    let [reset, update, new, recalled, after] = split_mut::<5>(kept, hidden);
    for n in 0..hidden {
        reset[n] = sigmoid(given[0][n] + remembered[0][n]);
        update[n] = sigmoid(given[1][n] + remembered[1][n]);
        recalled[n] = remembered[2][n];
        new[n] = tanh(given[2][n] + reset[n] * recalled[n]);
        after[n] = new[n] + update[n] * (state[n] - new[n]);
    }
}

#[inline(always)]
fn lstm_gradient<const SEEING: bool>(
    kept: &[f32],
    sees: &[f32],
    before: Before,
    pull: &[f32],
    carry: &mut [f32],
    to: &mut [f32],
) {
    let hidden = pull.len();
    let [input, forget, new, output, after] = split::<5>(kept, hidden);
    let sees = if SEEING { split::<SEEING_GATES>(sees, hidden) } else { [input; SEEING_GATES] };
    let earlier = before.memory.map(|memory| &memory[..hidden]);
    let carry = &mut carry[..hidden];
    let [of_input, of_forget, of_new, of_output] = split_mut::<4>(to, hidden);
    for n in 0..hidden {
        let seen = |number: usize, pull: f32| if SEEING { sees[number][n] * pull } else { 0.0 };
        let squashed = tanh(after[n]);
        of_output[n] = pull[n] * squashed * output[n] * (1.0 - output[n]);
        let through = carry[n] + pull[n] * output[n] * (1.0 - squashed * squashed);
        let memory = through + seen(2, of_output[n]);
        of_input[n] = memory * new[n] * input[n] * (1.0 - input[n]);
        of_forget[n] = memory * earlier.map_or(0.0, |earlier| earlier[n]) * forget[n] * (1.0 - forget[n]);
        of_new[n] = memory * input[n] * (1.0 - new[n] * new[n]);
        carry[n] = memory * forget[n] + seen(0, of_input[n]) + seen(1, of_forget[n]);
    }
}

#[inline(always)]
fn gru_gradient(kept: &[f32], before: Before, pull: &[f32], carry: &mut [f32], to: &mut [f32]) {
    let hidden = pull.len();
    let [reset, update, new, recalled] = split::<4>(kept, hidden);
    let (earlier, carry) = (&before.state[..hidden], &mut carry[..hidden]);
    let [of_reset, of_update, of_recalled, of_new] = split_mut::<4>(to, hidden);
    for n in 0..hidden {
        let pull = pull[n] + carry[n];
        of_new[n] = pull * (1.0 - update[n]) * (1.0 - new[n] * new[n]);
        of_reset[n] = of_new[n] * recalled[n] * reset[n] * (1.0 - reset[n]);
        of_update[n] = pull * (earlier[n] - new[n]) * update[n] * (1.0 - update[n]);
        of_recalled[n] = of_new[n] * reset[n];
        carry[n] = pull * update[n];
    }
}

/// What an item had before a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) state: &'a [f32],
    /// An LSTM's memory; none before the first step, where it is zero.
    pub(super) memory: Option<&'a [f32]>,
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    0.5 + 0.5 * tanh(0.5 * x)
}
