//! TSP-PRL: moves and scales a window step by step; a root policy chooses the kind of change, a leaf policy the change.
//! Wu et al., "Tree-Structured Policy based Progressive Reinforcement Learning for Temporally Language Grounding in Video",
//! AAAI 2020.
//!
//! Differs from the published code: the two policies take turns by epoch (leaves first) instead of every 200 steps, so that a
//! resumed run goes on as it would have; layers that no length normalisation follows start from the usual small weights
//! instead of N(0, 1), which drives the alignment logits into the thousands; returns are constants, advantages are not
//! detached (as published); units are feature rows, the sentence is the mean of its word vectors. The window of a video with
//! fewer than eight units is moved inside it.

mod check;
mod config;
mod rollout;
#[cfg(test)]
mod tests;
mod window;

use std::ops::Range;

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::functional::{l2_normalise, masked_mean, sigmoid};
use cuemark_tensor::recurrent::{Cell, Reading, StateWeights, recur};
use cuemark_tensor::{DType, Device, Pass};

use crate::layers::{Linear, linear, uniform};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task, VideoBatch,
};

pub use config::TspPrlConfig;
use rollout::{Fixed, Rollout, Said};
use window::{Window, leaf_reward, root_reward};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tsp-prl",
    title: "TSP-PRL",
    paper: "Wu et al., Tree-Structured Policy based Progressive Reinforcement Learning for Temporally Language Grounding \
            in Video, AAAI 2020",
    family: Family::Reinforcement,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "a tree of policies shifts and scales a window until an alignment head likes it best",
    full_sizes: &[
        FullSize { dataset: "charades-sta", settings: "", visual: 8192, words: 4800, millions: None },
        FullSize { dataset: "activitynet-captions", settings: "", visual: 4096, words: 300, millions: None },
    ],
    build: |settings, given, vb| Ok(Box::new(TspPrl::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<TspPrlConfig>(),
    check: check::check,
};

/// The branches of the tree in the order of the root's actions: parameter prefix, name in fixtures, actions.
const BRANCHES: [(&str, &str, usize); 5] = [
    ("scale", "scale", 4),
    ("left_move", "left", 3),
    ("right_move", "right", 3),
    ("left_offset", "left_adjust", 3),
    ("right_offset", "right_adjust", 3),
];

/// Which policy learns while the other one acts greedily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Learning {
    Leaves,
    Root,
}

/// The network.
#[derive(Debug)]
pub struct TspPrl {
    config: TspPrlConfig,
    global: Linear,
    local: Linear,
    location: Linear,
    sentence: Linear,
    state: Linear,
    gru: GruCell,
    root: Head,
    leaves: Vec<Head>,
    align: [Linear; 3],
}

/// A policy with its critic.
#[derive(Debug)]
struct Head {
    policy: Linear,
    value: Linear,
}

#[derive(Debug)]
struct GruCell {
    from_input: Linear,
    from_state: Linear,
}

/// What the network says of one state, or of several along leading axes.
struct Outputs {
    /// `[.., hidden]`.
    hidden: Tensor,
    /// What policies and critics say, side by side as [`columns`] has them.
    said: Tensor,
    /// `[.., 1]`: logit of the window's overlap.
    align: Tensor,
}

/// Where a policy and its critic stand in what is said: the root's, then the branches'. The critic stands after the actions.
fn columns(branch: Option<usize>) -> Range<usize> {
    let actions = |branch: usize| BRANCHES[branch].2;
    match branch {
        None => 0..BRANCHES.len(),
        Some(branch) => {
            let first = BRANCHES.len() + 1 + (0..branch).map(|earlier| actions(earlier) + 1).sum::<usize>();
            first..first + actions(branch)
        }
    }
}

impl Outputs {
    /// Logits `[.., actions]` of the root's policy or of a branch's, and the critic `[.., 1]`.
    fn of(&self, branch: Option<usize>) -> Result<(Tensor, Tensor)> {
        let columns = columns(branch);
        let policy = self.said.narrow(D::Minus1, columns.start, columns.len())?;
        Ok((policy, self.said.narrow(D::Minus1, columns.end, 1)?))
    }
}

impl Head {
    fn new(prefix: &str, hidden: usize, actions: usize, vb: &VarBuilder) -> Result<Self> {
        // Rows of about length 0.01 and 1.
        let make = |name: &str, outputs: usize, length: f64| -> Result<Linear> {
            let vb = vb.pp(format!("{prefix}_{name}"));
            let init = Init::Randn { mean: 0.0, stdev: length / (hidden as f64).sqrt() };
            let weight = vb.get_with_hints((outputs, hidden), "weight", init)?;
            Ok(Linear::new(weight, Some(vb.get_with_hints(outputs, "bias", Init::Const(0.0))?)))
        };
        Ok(Self { policy: make("policy", actions, 0.01)?, value: make("value", 1, 1.0)? })
    }
}

impl GruCell {
    fn new(inputs: usize, hidden: usize, vb: &VarBuilder) -> Result<Self> {
        let make = |name: &str, inputs: usize| -> Result<Linear> {
            let weight = vb.get_with_hints((3 * hidden, inputs), &format!("weight_{name}"), uniform(hidden))?;
            let bias = vb.get_with_hints(3 * hidden, &format!("bias_{name}"), uniform(hidden))?;
            Ok(Linear::new(weight, Some(bias)))
        };
        Ok(Self { from_input: make("ih", inputs)?, from_state: make("hh", hidden)? })
    }

    /// The states after every step of `[steps, batch, inputs]`, from one of zeros: `[steps, batch, hidden]`.
    fn every_step(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.from_state.bias_or_zeros()?;
        let state = StateWeights { weight: self.from_state.weight(), bias: Some(&bias), sees: None };
        Ok(recur(Cell::Gru, Reading::Forwards, &self.from_input.forward(x)?, state, None)?)
    }

    /// Gates reset, update, new.
    fn forward(&self, x: &Tensor, state: &Tensor) -> Result<Tensor> {
        let (given, kept) = (self.from_input.forward(x)?, self.from_state.forward(state)?);
        let hidden = state.dim(1)?;
        let part = |of: &Tensor, number: usize| of.narrow(1, number * hidden, hidden);
        let gate = |number: usize| -> Result<Tensor> { Ok(sigmoid(&(part(&given, number)? + part(&kept, number)?)?)?) };
        let new = (part(&given, 2)? + (gate(0)? * part(&kept, 2)?)?)?.tanh()?;
        Ok((&new + (gate(1)? * (state - &new)?)?)?)
    }
}

/// One of the three things that a state is made of, by what the sentence lets through.
fn enter(layer: &Linear, x: &Tensor, gate: &Tensor) -> Result<Tensor> {
    Ok(l2_normalise(&layer.forward(x)?)?.relu()?.broadcast_mul(gate)?)
}

/// `[windows, 2]`: start and end as parts of the video.
fn locations(windows: &[Window], device: &Device) -> Result<Tensor> {
    let location: Vec<f32> = windows.iter().flat_map(|window| window.location()).collect();
    Ok(Tensor::from_vec(location, (windows.len(), 2), device)?)
}

impl TspPrl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    pub fn new(config: &TspPrlConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let TspPrlConfig { hidden, window_units, align_hidden: [wide, narrow], .. } = *config;
        let seen = window_units * given.visual;
        let leaf = |(prefix, _, actions): &(&str, &str, usize)| Head::new(prefix, hidden, *actions, &vb);
        Ok(Self {
            global: linear(seen, hidden, vb.pp("gobal_fc"))?, // the reference's spelling
            local: linear(seen, hidden, vb.pp("local_fc"))?,
            location: linear(2, hidden, vb.pp("location_fc"))?,
            sentence: linear(given.words, hidden, vb.pp("sentence_fc"))?,
            state: linear(3 * hidden, hidden, vb.pp("state_fc"))?,
            gru: GruCell::new(hidden, hidden, &vb.pp("gru"))?,
            root: Head::new("global", hidden, BRANCHES.len(), &vb)?,
            leaves: BRANCHES.iter().map(leaf).collect::<Result<_>>()?,
            align: [
                linear(hidden, wide, vb.pp("iou_fc1"))?,
                linear(wide, narrow, vb.pp("iou_fc2"))?,
                linear(narrow, 1, vb.pp("iou_fc3"))?,
            ],
            config: config.clone(),
        })
    }

    /// What stays the same in all steps: global `[batch, window_units width]`, sentence `[batch, d_word]`.
    fn fix(&self, global: &Tensor, sentence: &Tensor) -> Result<Fixed> {
        let gate = sigmoid(&self.sentence.forward(sentence)?)?;
        Ok(Fixed { global: enter(&self.global, global, &gate)?, gate, heads: self.heads()? })
    }

    /// All policies and critics as one matrix.
    fn heads(&self) -> Result<Linear> {
        let heads = || std::iter::once(&self.root).chain(&self.leaves).flat_map(|head| [&head.policy, &head.value]);
        let weights: Vec<&Tensor> = heads().map(Linear::weight).collect();
        let biases = heads().map(Linear::bias_or_zeros).collect::<candle_core::Result<Vec<_>>>()?;
        Ok(Linear::new(Tensor::cat(&weights, 0)?, Some(Tensor::cat(&biases, 0)?)))
    }

    /// What is seen of windows, before anything is remembered: local `[steps, batch, window_units width]` and location
    /// `[steps, batch, 2]` to `[steps, batch, hidden]`.
    fn see(&self, fixed: &Fixed, local: &Tensor, location: &Tensor) -> Result<Tensor> {
        let local = enter(&self.local, local, &fixed.gate)?;
        let parts = [fixed.global.broadcast_as(local.shape())?, enter(&self.location, location, &fixed.gate)?];
        Ok(self.state.forward_relu(&Tensor::cat(&[&local, &parts[0], &parts[1]], D::Minus1)?)?)
    }

    /// What is said where `seen` is seen and `hidden` is the state after it.
    fn say(&self, fixed: &Fixed, seen: &Tensor, hidden: Tensor) -> Result<Outputs> {
        let align = self.align[1].forward_relu(&self.align[0].forward_relu(seen)?)?;
        Ok(Outputs { said: fixed.heads.forward(&hidden)?, align: self.align[2].forward(&align)?, hidden })
    }

    /// One step of every sample: local `[batch, window_units width]`, location `[batch, 2]`, hidden `[batch, hidden]`.
    fn forward(&self, fixed: &Fixed, local: &Tensor, location: &Tensor, hidden: &Tensor) -> Result<Outputs> {
        let seen = self.see(fixed, &local.unsqueeze(0)?, &location.unsqueeze(0)?)?.squeeze(0)?;
        let hidden = self.gru.forward(&seen, hidden)?;
        self.say(fixed, &seen, hidden)
    }

    /// All steps of episodes that were walked already, in a few operations.
    fn again(&self, batch: &Batch, fixed: &Fixed, walked: &Rollout) -> Result<Outputs> {
        let (steps, samples) = (walked.windows.len(), batch.queries.video.len());
        let (windows, live) = (walked.windows.concat(), walked.live.concat());
        let rows = batch.queries.video.repeat(steps);
        let local = self.features(&batch.videos, &rows, &windows, &live)?.reshape((steps, samples, ()))?;
        let location = locations(&windows, local.device())?.reshape((steps, samples, 2))?;
        let seen = self.see(fixed, &local, &location)?;
        let hidden = self.gru.every_step(&seen)?;
        self.say(fixed, &seen, hidden)
    }

    /// Features of the units that stand for each window, `[batch, window_units width]`; zeros where `seen` is false.
    fn features(&self, videos: &VideoBatch, rows: &[usize], windows: &[Window], seen: &[bool]) -> Result<Tensor> {
        let (_, units, width) = videos.visual.dims3()?;
        let count = self.config.window_units;
        let pick = |(row, window): (&usize, &Window)| -> Vec<u32> {
            window.picked(count).into_iter().map(|unit| (row * units + unit.min(units - 1)) as u32).collect()
        };
        let places: Vec<u32> = rows.iter().zip(windows).flat_map(pick).collect();
        let places = Tensor::new(places, videos.visual.device())?;
        let picked = videos.visual.flatten_to(1)?.index_select(&places, 0)?.reshape((rows.len(), count * width))?;
        let seen: Vec<f32> = seen.iter().map(|seen| f32::from(u8::from(*seen))).collect();
        Ok(picked.broadcast_mul(&Tensor::from_vec(seen, (rows.len(), 1), videos.visual.device())?)?)
    }

    /// The state of a batch's windows, read by the network.
    fn observe(
        &self,
        batch: &Batch,
        fixed: &Fixed,
        windows: &[Window],
        live: &[bool],
        hidden: &Tensor,
    ) -> Result<Outputs> {
        let local = self.features(&batch.videos, &batch.queries.video, windows, live)?;
        self.forward(fixed, &local, &locations(windows, hidden.device())?, hidden)
    }

    /// What stays the same in all steps, and the first windows.
    fn begin(&self, batch: &Batch) -> Result<(Fixed, Vec<Window>, Tensor)> {
        let of_query: Vec<usize> =
            batch.queries.video.iter().map(|video| batch.videos.lengths[*video].max(1)).collect();
        let whole = |units: &usize| Window { start: 0, end: *units as i64 - 1, units: *units as i64 };
        let wholes: Vec<Window> = of_query.iter().map(whole).collect();
        let global = self.features(&batch.videos, &batch.queries.video, &wholes, &vec![true; wholes.len()])?;
        let sentences = masked_mean(&batch.queries.words, &batch.queries.mask.unsqueeze(2)?, 1)?;
        let hidden = Tensor::zeros((wholes.len(), self.config.hidden), DType::F32, global.device())?;
        Ok((self.fix(&global, &sentences)?, of_query.into_iter().map(Window::initial).collect(), hidden))
    }

    /// Lets every query of the batch move its window for the steps of an episode. No gradient goes through: which way an episode
    /// goes is known only step by step, but what is learnt from it is worked out for all steps at once.
    fn roll_out(
        &self,
        batch: &Batch,
        (fixed, mut windows, mut hidden): (&Fixed, Vec<Window>, Tensor),
        learning: Learning,
        pass: &Pass,
    ) -> Result<Rollout> {
        let fixed = fixed.detached();
        let moments: Vec<(f64, f64)> = batch
            .targets(CARD.name)?
            .spans
            .iter()
            .zip(&windows)
            .map(|(span, window)| (span.start() * window.units as f64, span.end() * window.units as f64))
            .collect();
        let mut live = vec![true; windows.len()];
        let mut done = Rollout::default();
        for _ in 0..self.config.steps {
            let outputs = self.observe(batch, &fixed, &windows, &live, &hidden)?;
            let said = Said::of(&outputs)?;
            let greedy = said.greedy();
            let mut branches = greedy.root.clone();
            if learning == Learning::Root {
                branches = said.draw(None, pass);
            }
            let drawn: Vec<Vec<usize>> = (0..BRANCHES.len()).map(|branch| said.draw(Some(branch), pass)).collect();
            let of = |all: &[Vec<usize>]| branches.iter().enumerate().map(|(row, branch)| all[*branch][row]).collect();
            let actions: Vec<usize> = if learning == Learning::Leaves { of(&drawn) } else { of(&greedy.leaves) };
            let critic = |row: usize| said.value((learning == Learning::Leaves).then_some(branches[row]), row);
            done.values.push((0..windows.len()).map(critic).collect());
            done.windows.push(windows.clone());
            done.live.push(live.clone());
            let (mut overlaps, mut rewards) = (Vec::new(), Vec::new());
            for row in 0..windows.len() {
                let (window, tenth) = (windows[row], windows[row].units / 10);
                let reached =
                    |branch: usize| window.moved(branch, greedy.leaves[branch][row], tenth).0.overlap(moments[row]);
                let (next, goes_on) = window.moved(branches[row], actions[row], tenth);
                let (before, now) = (window.overlap(moments[row]), next.overlap(moments[row]));
                rewards.push(match learning {
                    Learning::Leaves => leaf_reward(before, now),
                    Learning::Root => {
                        root_reward(before, now, (0..BRANCHES.len()).map(reached).fold(f64::NEG_INFINITY, f64::max))
                    }
                } as f32);
                overlaps.push(before as f32);
                live[row] &= goes_on;
                windows[row] = next;
            }
            done.overlaps.push(overlaps);
            done.rewards.push(rewards);
            done.branches.push(branches);
            done.actions.push(actions);
            hidden = outputs.hidden.detach();
        }
        Ok(done)
    }

    fn learning(pass: &Pass) -> Learning {
        // Epochs count from 1: leaves first.
        if (pass.stage() + pass.epoch()).is_multiple_of(2) && pass.is_training() {
            Learning::Root
        } else {
            Learning::Leaves
        }
    }
}

impl Model for TspPrl {
    fn input(&self) -> Input {
        Input {
            normalise: Normalise::None,
            resample: Resample::MeanBinsIfLonger { rows: self.config.units },
            ..Input::pairs(self.config.units)
        }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (fixed, windows, hidden) = self.begin(batch)?;
        let learning = Self::learning(pass);
        let walked = self.roll_out(batch, (&fixed, windows, hidden), learning, pass)?;
        walked.loss(&self.again(batch, &fixed, &walked)?, learning, &self.config)
    }

    /// One answer: of all windows on the greedy path the one that the alignment head likes best.
    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let (fixed, mut windows, mut hidden) = self.begin(batch)?;
        let mut live = vec![true; windows.len()];
        let mut best: Vec<(f32, Window)> = windows.iter().map(|window| (f32::NEG_INFINITY, *window)).collect();
        for _ in 0..=self.config.steps {
            let outputs = self.observe(batch, &fixed, &windows, &live, &hidden)?;
            let said = Said::of(&outputs)?;
            let (greedy, liked) = (said.greedy(), said.aligns());
            for row in 0..windows.len() {
                if !live[row] {
                    continue;
                }
                if liked[row] > best[row].0 {
                    best[row] = (liked[row], windows[row]);
                }
                let branch = greedy.root[row];
                let tenth = windows[row].units / 10;
                (windows[row], live[row]) = windows[row].moved(branch, greedy.leaves[branch][row], tenth);
            }
            if !live.contains(&true) {
                break;
            }
            hidden = outputs.hidden;
        }
        let answer = |(score, window): (f32, Window)| {
            let units = window.units as f64;
            // A video of one unit has no window that is not empty.
            let (start, end) = if window.end > window.start { (window.start, window.end) } else { (0, window.units) };
            NormSpan::new(start as f64 / units, end as f64 / units)
                .map(|span| Proposal { span, score })
                .into_iter()
                .collect()
        };
        Ok(best.into_iter().map(answer).collect())
    }

    fn rate(&self, parameter: &str, pass: &Pass) -> f64 {
        let root = parameter.starts_with("global_policy") || parameter.starts_with("global_value");
        let leaf = BRANCHES.iter().any(|(prefix, _, _)| {
            parameter.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("_policy") || rest.starts_with("_value"))
        });
        let rests = match Self::learning(pass) {
            Learning::Leaves => root,
            Learning::Root => leaf,
        };
        if rests { 0.0 } else { 1.0 }
    }
}
