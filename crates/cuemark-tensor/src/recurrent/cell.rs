//! What happens to one item in one step.

use candle_core::{D, Result, Tensor};

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
pub(super) const SEEING: usize = 3;

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
        if self == Self::Peephole { SEEING } else { 0 }
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
        let hidden = state.len();
        match self {
            Self::Lstm | Self::Peephole => {
                for n in 0..hidden {
                    let gate = |number: usize| given[number * hidden + n] + remembered[number * hidden + n];
                    let seen = |number: usize, memory: f32| sees.get(number * hidden + n).map_or(0.0, |by| by * memory);
                    let input = sigmoid(gate(0) + seen(0, memory[n]));
                    let forget = sigmoid(gate(1) + seen(1, memory[n]));
                    let new = gate(2).tanh();
                    memory[n] = forget * memory[n] + input * new;
                    let output = sigmoid(gate(3) + seen(2, memory[n]));
                    for (part, value) in
                        [input, forget, new, output, memory[n], output * memory[n].tanh()].into_iter().enumerate()
                    {
                        kept[part * hidden + n] = value;
                    }
                }
            }
            Self::Gru => {
                for n in 0..hidden {
                    let gate = |number: usize| given[number * hidden + n] + remembered[number * hidden + n];
                    let (reset, update) = (sigmoid(gate(0)), sigmoid(gate(1)));
                    let recalled = remembered[2 * hidden + n];
                    let new = (given[2 * hidden + n] + reset * recalled).tanh();
                    for (part, value) in
                        [reset, update, new, recalled, new + update * (state[n] - new)].into_iter().enumerate()
                    {
                        kept[part * hidden + n] = value;
                    }
                }
            }
        }
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
        let hidden = pull.len();
        for n in 0..hidden {
            let part = |number: usize| kept[number * hidden + n];
            match self {
                Self::Lstm | Self::Peephole => {
                    let [input, forget, new, output] = [part(0), part(1), part(2), part(3)];
                    let seen = |number: usize, pull: f32| sees.get(number * hidden + n).map_or(0.0, |by| by * pull);
                    let squashed = part(4).tanh();
                    let of_output = pull[n] * squashed * output * (1.0 - output);
                    let through = carry[n] + pull[n] * output * (1.0 - squashed * squashed);
                    let memory = through + seen(2, of_output);
                    let of_input = memory * new * input * (1.0 - input);
                    let of_forget = memory * before.memory(n) * forget * (1.0 - forget);
                    to[n] = of_input;
                    to[hidden + n] = of_forget;
                    to[2 * hidden + n] = memory * input * (1.0 - new * new);
                    to[3 * hidden + n] = of_output;
                    carry[n] = memory * forget + seen(0, of_input) + seen(1, of_forget);
                }
                Self::Gru => {
                    let [reset, update, new, recalled] = [part(0), part(1), part(2), part(3)];
                    let pull = pull[n] + carry[n];
                    let of_new = pull * (1.0 - update) * (1.0 - new * new);
                    to[n] = of_new * recalled * reset * (1.0 - reset);
                    to[hidden + n] = pull * (before.state[n] - new) * update * (1.0 - update);
                    to[2 * hidden + n] = of_new * reset;
                    to[3 * hidden + n] = of_new;
                    carry[n] = pull * update;
                }
            }
        }
    }
}

/// What an item had before a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) state: &'a [f32],
    /// An LSTM's memory; none before the first step, where it is zero.
    pub(super) memory: Option<&'a [f32]>,
}

impl Before<'_> {
    fn memory(&self, n: usize) -> f32 {
        self.memory.map_or(0.0, |memory| memory[n])
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
