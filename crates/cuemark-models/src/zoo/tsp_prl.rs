//! TSP-PRL: moves and scales a window step by step; a root policy chooses the kind of change, a leaf policy the change.
//! Wu et al., "Tree-Structured Policy based Progressive Reinforcement Learning for Temporally Language Grounding in Video",
//! AAAI 2020.
//!
//! Differs from the published code: the two policies take turns by epoch (leaves first) instead of every 200 steps, so that a
//! resumed run goes on as it would have; layers that no length normalisation follows start from the usual small weights
//! instead of N(0, 1), which drives the alignment logits into the thousands; returns are constants, advantages are not
//! detached (as published); units are feature rows, the sentence is the mean of its word vectors. The window of a video with
//! fewer than eight units is moved inside it.

use candle_core::{D, Tensor};
use candle_nn::{Init, Module, VarBuilder};
use cuemark_core::NormSpan;
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::functional::{bce_with_logits, l2_normalise, log_softmax, masked_mean, sigmoid};
use cuemark_tensor::{DType, Device, Pass};
use serde::{Deserialize, Serialize};

use crate::check::{Fixture, Trace};
use crate::layers::{Linear, linear, uniform};
use crate::{
    Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task, VideoBatch,
    fill_settings, read_settings,
};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "tsp-prl",
    title: "TSP-PRL",
    paper: "Wu et al., Tree-Structured Policy based Progressive Reinforcement Learning for Temporally Language Grounding \
            in Video, AAAI 2020",
    family: Family::Reinforcement,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    bi_encoder: false,
    idea: "a tree of policies shifts and scales a window until an alignment head likes it best",
    full_sizes: &[
        FullSize { dataset: "charades-sta", settings: "", visual: 8192, words: 4800, millions: None },
        FullSize { dataset: "activitynet-captions", settings: "", visual: 4096, words: 300, millions: None },
    ],
    build: |table, given, vb| Ok(Box::new(TspPrl::new(&read_settings("tsp-prl", table)?, given, vb)?)),
    settings: |table| fill_settings::<TspPrlConfig>("tsp-prl", table),
    check,
};

/// The branches of the tree in the order of the root's actions: parameter prefix, name in fixtures, actions.
const BRANCHES: [(&str, &str, usize); 5] = [
    ("scale", "scale", 4),
    ("left_move", "left", 3),
    ("right_move", "right", 3),
    ("left_offset", "left_adjust", 3),
    ("right_offset", "right_adjust", 3),
];

/// Units that stand for a window of fewer than ten, by its length.
const SHORT_WINDOWS: [[usize; 10]; 9] = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
    [0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
    [0, 0, 1, 1, 1, 2, 2, 2, 3, 3],
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    [0, 1, 1, 2, 2, 3, 3, 4, 4, 5],
    [0, 1, 2, 2, 3, 3, 4, 4, 5, 6],
    [0, 1, 2, 3, 4, 4, 5, 5, 6, 7],
    [0, 1, 2, 3, 4, 4, 5, 6, 7, 8],
];

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TspPrlConfig {
    /// The most units of a video; longer ones are averaged to them. Default: 256
    pub units: usize,
    /// Units that stand for a window. Default: 10
    pub window_units: usize,
    /// Width of the state. Default: 1024
    pub hidden: usize,
    /// Widths of the alignment head. Default: 256 and 128
    pub align_hidden: [usize; 2],
    /// Steps of an episode. Default: 20
    pub steps: usize,
    /// What a reward loses per step it lies ahead. Default: 0.4
    pub discount: f64,
    /// Weight of the policies' entropy. Default: 0.1
    pub entropy_weight: f64,
}

impl Default for TspPrlConfig {
    fn default() -> Self {
        Self {
            units: 256,
            window_units: 10,
            hidden: 1024,
            align_hidden: [256, 128],
            steps: 20,
            discount: 0.4,
            entropy_weight: 0.1,
        }
    }
}

/// A window in units, `start..=end`, inside a video of `units`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    start: i64,
    end: i64,
    units: i64,
}

/// Which policy learns while the other one acts greedily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Learning {
    Leaves,
    Root,
}

impl Window {
    /// The middle half of a video.
    fn initial(units: usize) -> Self {
        let units = units as i64;
        let quarter = units / 4;
        let start = (quarter - 1).max(0);
        Self { start, end: (units - quarter - 1).clamp((start + 1).min(units - 1), (units - 1).max(0)), units }
    }

    /// The window after an action, and whether the episode goes on: it ends where a window is or becomes empty.
    fn moved(self, branch: usize, action: usize, tenth: i64) -> (Self, bool) {
        let Self { start, end, units } = self;
        let (centre, width) = ((start + end).div_euclid(2), (end - start) as f64);
        let step = if branch < 3 { tenth } else { 1 };
        let step = if branch % 2 == 1 { -step } else { step };
        let (mut next, mut last) = match (branch, action) {
            (0, _) => {
                let half = (width * [0.6, 0.75, 0.417, 0.333][action.min(3)]) as i64;
                (centre - half, centre + half)
            }
            (_, 0) => (start + step, end + step),
            (_, 1) => (start + step, end),
            _ => (start, end + step),
        };
        if next < 0 {
            next = 0;
        }
        if last >= units {
            last = units - 1;
        }
        (Self { start: next, end: last, units }, end > start && last > next)
    }

    /// Intersection over hull with a moment in units; negative when they are apart.
    fn overlap(self, moment: (f64, f64)) -> f64 {
        let (start, end) = (self.start as f64, self.end as f64);
        (end.min(moment.1) - start.max(moment.0)) / (end.max(moment.1) - start.min(moment.0)).max(1e-9)
    }

    /// Start and end as parts of the video.
    fn location(self) -> [f32; 2] {
        let last = (self.units - 1).max(1) as f32;
        [self.start as f32 / last, self.end as f32 / last]
    }

    /// The units that stand for it.
    fn picked(self, count: usize) -> Vec<usize> {
        let length = usize::try_from(self.end - self.start + 1).unwrap_or(1).max(1);
        let first = usize::try_from(self.start).unwrap_or(0);
        pick_units(length, count).into_iter().map(|unit| first + unit).collect()
    }
}

/// `count` of `length` units, evenly spread; short windows repeat some.
fn pick_units(length: usize, count: usize) -> Vec<usize> {
    if length < count {
        return match SHORT_WINDOWS.get(length.saturating_sub(1)).filter(|_| count == 10) {
            Some(table) => table.to_vec(),
            None => (0..count).map(|place| place * length / count).collect(),
        };
    }
    (1..=count).map(|place| place * length / (count + 1)).collect()
}

/// What the leaf policy earns when the overlap goes from `before` to `now`.
fn leaf_reward(before: f64, now: f64) -> f64 {
    match (now > before && before >= 0.0, now) {
        (true, now) if now > 0.5 => 1.0 + now,
        (true, _) => 1.0,
        (false, now) if now >= 0.0 && now <= before => -0.1,
        _ => -1.0,
    }
}

/// What the root policy earns; `best` is the largest overlap that the greedy leaf of any branch would reach.
fn root_reward(before: f64, now: f64, best: f64) -> f64 {
    let first = if (now - best).abs() < 1e-6 { 1.0 } else { now - best };
    first + (now - before)
}

/// Discounted rewards of one episode; the last one counts the value of its own state as what follows.
fn returns(rewards: &[f32], last_value: f32, discount: f32) -> Vec<f32> {
    let mut after = last_value;
    let mut all: Vec<f32> = rewards
        .iter()
        .rev()
        .map(|reward| {
            after = reward + discount * after;
            after
        })
        .collect();
    all.reverse();
    all
}

/// Policy and value losses of every step, any one shape.
fn actor_critic(
    log_probs: &Tensor,
    values: &Tensor,
    entropies: &Tensor,
    returns: &Tensor,
    weight: f64,
) -> Result<(Tensor, Tensor)> {
    let advantage = (returns - values)?;
    let policy = ((log_probs * &advantage)?.neg()? - (entropies * weight)?)?;
    Ok((policy, advantage.sqr()?))
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

/// What the network says in one state.
struct Outputs {
    hidden: Tensor,
    /// `[batch, 5]` logits and `[batch, 1]`.
    root: (Tensor, Tensor),
    /// The same of every branch.
    leaves: Vec<(Tensor, Tensor)>,
    /// `[batch, 1]`: logit of the window's overlap.
    align: Tensor,
}

/// What every episode of a batch did, step by step.
#[derive(Default)]
struct Rollout {
    log_probs: Vec<Tensor>,
    values: Vec<Tensor>,
    entropies: Vec<Tensor>,
    aligns: Vec<Tensor>,
    /// Overlaps before the actions, rewards, and whether the step counts, `[step][sample]`.
    overlaps: Vec<Vec<f32>>,
    rewards: Vec<Vec<f32>>,
    counts: Vec<Vec<f32>>,
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

    fn forward(&self, hidden: &Tensor) -> Result<(Tensor, Tensor)> {
        Ok((self.policy.forward(hidden)?, self.value.forward(hidden)?))
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

impl TspPrl {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped.
    #[allow(clippy::needless_pass_by_value)] // candle's constructors take the builder by value, and so do ours
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

    /// # Shapes
    /// - global and local `[batch, window_units width]`, sentence `[batch, d_word]`, location `[batch, 2]`,
    ///   hidden `[batch, hidden]`
    fn forward(
        &self,
        global: &Tensor,
        local: &Tensor,
        sentence: &Tensor,
        location: &Tensor,
        hidden: &Tensor,
    ) -> Result<Outputs> {
        let gate = sigmoid(&self.sentence.forward(sentence)?)?;
        let enter =
            |layer: &Linear, x: &Tensor| -> Result<Tensor> { Ok((l2_normalise(&layer.forward(x)?)?.relu()? * &gate)?) };
        let parts = [enter(&self.local, local)?, enter(&self.global, global)?, enter(&self.location, location)?];
        let x = self.state.forward(&Tensor::cat(&parts, 1)?)?.relu()?;
        let hidden = self.gru.forward(&x, hidden)?;
        let align = self.align[1].forward(&self.align[0].forward(&x)?.relu()?)?.relu()?;
        Ok(Outputs {
            root: self.root.forward(&hidden)?,
            leaves: self.leaves.iter().map(|leaf| leaf.forward(&hidden)).collect::<Result<_>>()?,
            align: self.align[2].forward(&align)?,
            hidden,
        })
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
        let location: Vec<f32> = windows.iter().flat_map(|window| window.location()).collect();
        let location = Tensor::from_vec(location, (windows.len(), 2), hidden.device())?;
        self.forward(&fixed.global, &local, &fixed.sentences, &location, hidden)
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
        Ok((Fixed { global, sentences }, of_query.into_iter().map(Window::initial).collect(), hidden))
    }

    /// Lets every query of the batch move its window for the steps of an episode.
    fn roll_out(&self, batch: &Batch, moments: &[NormSpan], learning: Learning, pass: &Pass) -> Result<Rollout> {
        let (fixed, mut windows, mut hidden) = self.begin(batch)?;
        let moments: Vec<(f64, f64)> = moments
            .iter()
            .zip(&windows)
            .map(|(span, window)| (span.start() * window.units as f64, span.end() * window.units as f64))
            .collect();
        let mut live = vec![true; windows.len()];
        let mut done = Rollout::default();
        for _ in 0..self.config.steps {
            let outputs = self.observe(batch, &fixed, &windows, &live, &hidden)?;
            let greedy = Greedy::of(&outputs)?;
            let draw = |logits: &Tensor| -> Result<Vec<usize>> { sample(logits, pass) };
            let mut branches = greedy.root.clone();
            if learning == Learning::Root {
                branches = draw(&outputs.root.0)?;
            }
            let drawn = outputs.leaves.iter().map(|leaf| draw(&leaf.0)).collect::<Result<Vec<_>>>()?;
            let of = |all: &[Vec<usize>]| branches.iter().enumerate().map(|(row, branch)| all[*branch][row]).collect();
            let actions: Vec<usize> = if learning == Learning::Leaves { of(&drawn) } else { of(&greedy.leaves) };
            done.remember(&outputs, learning, &branches, &actions)?;
            let (mut overlaps, mut rewards) = (Vec::new(), Vec::new());
            done.counts.push(live.iter().map(|live| f32::from(u8::from(*live))).collect());
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
            hidden = outputs.hidden;
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

/// What stays the same in all steps of an episode.
struct Fixed {
    global: Tensor,
    sentences: Tensor,
}

/// The likeliest action of every policy, `[sample]`, of leaves `[branch][sample]`.
struct Greedy {
    root: Vec<usize>,
    leaves: Vec<Vec<usize>>,
}

impl Greedy {
    fn of(outputs: &Outputs) -> Result<Self> {
        let leaves = outputs.leaves.iter().map(|leaf| likeliest(&leaf.0)).collect::<Result<_>>()?;
        Ok(Self { root: likeliest(&outputs.root.0)?, leaves })
    }
}

fn likeliest(logits: &Tensor) -> Result<Vec<usize>> {
    Ok(logits.argmax(1)?.to_vec1::<u32>()?.into_iter().map(|action| action as usize).collect())
}

/// An action per row, drawn by its probability; the likeliest when not training.
fn sample(logits: &Tensor, pass: &Pass) -> Result<Vec<usize>> {
    if !pass.is_training() {
        return likeliest(logits);
    }
    let rows = log_softmax(logits, D::Minus1)?.detach().to_vec2::<f32>()?;
    let draw = |row: Vec<f32>| {
        let weights: Vec<f64> = row.into_iter().map(|log| f64::from(log).exp()).collect();
        pass.draw(|rng| rng.weighted(&weights)).flatten().unwrap_or(0)
    };
    Ok(rows.into_iter().map(draw).collect())
}

impl Rollout {
    /// Keeps log probability, value and entropy of the policy that learns, at the actions taken.
    fn remember(&mut self, outputs: &Outputs, learning: Learning, branches: &[usize], actions: &[usize]) -> Result<()> {
        let index = |places: &[usize]| {
            let places: Vec<u32> = places.iter().map(|place| *place as u32).collect();
            Tensor::from_vec(places, (actions.len(), 1), outputs.hidden.device())
        };
        let logs = |logits: &Tensor| -> Result<(Tensor, Tensor)> {
            let logs = log_softmax(logits, D::Minus1)?;
            let entropy = (&logs * logs.exp()?)?.sum_keepdim(1)?.neg()?;
            Ok((logs, entropy))
        };
        let (log_prob, value, entropy) = match learning {
            Learning::Root => {
                let (logs, entropy) = logs(&outputs.root.0)?;
                (logs.gather(&index(branches)?, 1)?, outputs.root.1.clone(), entropy)
            }
            Learning::Leaves => {
                let all = outputs.leaves.iter().map(|leaf| logs(&leaf.0)).collect::<Result<Vec<_>>>()?;
                let first = |branch: usize| BRANCHES[..branch].iter().map(|(_, _, actions)| actions).sum::<usize>();
                let places: Vec<usize> =
                    branches.iter().zip(actions).map(|(branch, action)| first(*branch) + action).collect();
                let side_by_side = |parts: Vec<&Tensor>| Tensor::cat(&parts, 1);
                let branch = index(branches)?;
                let log_prob = side_by_side(all.iter().map(|leaf| &leaf.0).collect())?.gather(&index(&places)?, 1)?;
                let value = side_by_side(outputs.leaves.iter().map(|leaf| &leaf.1).collect())?.gather(&branch, 1)?;
                (log_prob, value, side_by_side(all.iter().map(|leaf| &leaf.1).collect())?.gather(&branch, 1)?)
            }
        };
        self.log_probs.push(log_prob);
        self.values.push(value);
        self.entropies.push(entropy);
        self.aligns.push(outputs.align.clone());
        Ok(())
    }

    /// Steps of sample `row` that count: up to and including the one that ended its episode.
    fn length(&self, row: usize) -> usize {
        self.counts.iter().filter(|counts| counts[row] > 0.0).count()
    }

    fn loss(&self, config: &TspPrlConfig) -> Result<Loss> {
        let (steps, samples) = (self.counts.len(), self.counts.first().map_or(0, Vec::len));
        let together = |all: &[Tensor]| Tensor::cat(all, 1); // [sample, step]
        let (log_probs, values) = (together(&self.log_probs)?, together(&self.values)?);
        let device = values.device().clone();
        let known = values.detach().to_vec2::<f32>()?;
        let (mut expected, mut shares, mut total_reward) =
            (vec![0f32; samples * steps], vec![0f32; samples * steps], 0.0);
        for row in 0..samples {
            let length = self.length(row);
            let rewards: Vec<f32> = (0..length).map(|step| self.rewards[step][row]).collect();
            let last_value = length.checked_sub(1).map_or(0.0, |last| known[row][last]);
            for (step, value) in returns(&rewards, last_value, config.discount as f32).into_iter().enumerate() {
                expected[row * steps + step] = value;
                shares[row * steps + step] = 1.0 / (length * samples) as f32;
            }
            total_reward += rewards.iter().sum::<f32>() / (length.max(1) * samples) as f32;
        }
        let square = |values: Vec<f32>| Tensor::from_vec(values, (samples, steps), &device);
        let (expected, shares) = (square(expected)?, square(shares)?);
        let (policy, value) =
            actor_critic(&log_probs, &values, &together(&self.entropies)?, &expected, config.entropy_weight)?;
        let (policy, value) = ((policy * &shares)?.sum_all()?, (value * &shares)?.sum_all()?);
        let overlap = |row: usize| self.overlaps.iter().map(move |overlaps| overlaps[row]);
        let overlaps = square((0..samples).flat_map(overlap).collect())?;
        let touching = overlaps.gt(0.0)?.to_dtype(DType::F32)?;
        let align = (bce_with_logits(&together(&self.aligns)?, &overlaps)? * &touching)?.sum_all()?;
        let align = (align / touching.sum_all()?.maximum(1.0)?)?;
        let total = ((&policy + &value)? + &align)?;
        let reward = Tensor::new(total_reward, &device)?;
        Ok(Loss { total, parts: vec![("policy", policy), ("value", value), ("align", align), ("reward", reward)] })
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
        let moments = &batch.targets(CARD.name)?.spans;
        self.roll_out(batch, moments, Self::learning(pass), pass)?.loss(&self.config)
    }

    /// One answer: of all windows on the greedy path the one that the alignment head likes best.
    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        let (fixed, mut windows, mut hidden) = self.begin(batch)?;
        let mut live = vec![true; windows.len()];
        let mut best: Vec<(f32, Window)> = windows.iter().map(|window| (f32::NEG_INFINITY, *window)).collect();
        for _ in 0..=self.config.steps {
            let outputs = self.observe(batch, &fixed, &windows, &live, &hidden)?;
            let greedy = Greedy::of(&outputs)?;
            let liked = outputs.align.squeeze(1)?.to_vec1::<f32>()?;
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

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let wide = fixture.numbers("iou_hidden")?;
    let config = TspPrlConfig {
        window_units: fixture.number("window_units")?,
        hidden: fixture.number("hidden")?,
        align_hidden: [wide.first().copied().unwrap_or(0), wide.get(1).copied().unwrap_or(0)],
        discount: fixture.real("discount")?,
        entropy_weight: fixture.real("entropy_weight")?,
        ..TspPrlConfig::default()
    };
    let sentence = fixture.input("sentence")?;
    let given = Given::widths(fixture.number("unit_feature")?, sentence.dim(1)?, 0);
    let net = TspPrl::new(&config, &given, vb.clone())?;
    let (global, local) = (fixture.input("global_feature")?, fixture.input("local_feature")?);
    let outputs = net.forward(&global, &local, &sentence, &fixture.input("location")?, &fixture.input("hidden")?)?;

    let mut trace = Trace::new();
    trace.out("hidden", &outputs.hidden);
    trace.out("iou_logit", &outputs.align);
    trace.out("root_policy", &outputs.root.0);
    trace.out("root_value", &outputs.root.1);
    for ((_, name, _), leaf) in BRANCHES.iter().zip(&outputs.leaves) {
        trace.out(&format!("{name}_policy"), &leaf.0);
        trace.out(&format!("{name}_value"), &leaf.1);
    }
    let table =
        |rows: Vec<f32>, columns: usize| Tensor::from_vec(rows.clone(), (rows.len() / columns, columns), &Device::Cpu);
    let actions = fixture.counts("env_action")?;
    let moves = actions.chunks_exact(6).flat_map(|row| {
        let window = Window { start: row[2] as i64, end: row[3] as i64, units: row[5] as i64 };
        let (next, goes_on) = window.moved(row[0], row[1], row[4] as i64);
        [next.start as f32, next.end as f32, f32::from(u8::from(goes_on))]
    });
    trace.out("env_window", &table(moves.collect(), 3)?);
    let lengths = fixture.tensor("out.ten_index")?.dim(0)?;
    let picked = (1..=lengths).flat_map(|length| pick_units(length, config.window_units));
    trace.out("ten_index", &table(picked.map(|unit| unit as f32).collect(), config.window_units)?);
    let reals = |name: &str| -> Result<Vec<f64>> {
        Ok(fixture.input(name)?.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f64::from).collect())
    };
    let (before, now, reached) = (reals("prev_iou")?, reals("cur_iou")?, reals("branch_iou")?);
    let changes = before.iter().zip(&now);
    let leaf: Vec<f32> = changes.clone().map(|(before, now)| leaf_reward(*before, *now) as f32).collect();
    let best = reached.chunks_exact(BRANCHES.len()).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let root: Vec<f32> =
        changes.zip(best).map(|((before, now), best)| root_reward(*before, *now, best) as f32).collect();
    trace.out("leaf_reward", &Tensor::new(leaf, &Device::Cpu)?);
    trace.out("root_reward", &Tensor::new(root, &Device::Cpu)?);
    let (rewards, values) = (fixture.input("reward")?.to_vec1::<f32>()?, fixture.input("value")?);
    let last = values.to_vec1::<f32>()?.last().copied().unwrap_or(0.0);
    let expected = Tensor::new(returns(&rewards, last, config.discount as f32), values.device())?;
    let (log_probs, entropies) = (fixture.input("log_prob")?, fixture.input("entropy")?);
    let (policy, value) = actor_critic(&log_probs, &values, &entropies, &expected, config.entropy_weight)?;
    trace.loss("policy", &policy.mean_all()?);
    trace.loss("value", &value.mean_all()?);
    Ok(trace)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
    use cuemark_core::Rng;
    use cuemark_tensor::Params;

    use super::*;
    use crate::testing::{TOY, Toy, best_overlaps, gap};

    const LONG: Toy = Toy { clips: 20, ..TOY };

    fn config() -> TspPrlConfig {
        TspPrlConfig { hidden: 24, align_hidden: [16, 8], steps: 8, ..TspPrlConfig::default() }
    }

    fn net(params: &Params) -> TspPrl {
        TspPrl::new(&config(), &LONG.given(), params.builder()).unwrap()
    }

    #[test]
    fn every_query_has_one_answer_inside_its_video() {
        let ranked = net(&Params::seeded(1, &Device::Cpu)).propose(&LONG.batch(1)).unwrap();
        assert_eq!(ranked.len(), LONG.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 1);
            assert!(
                proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0 && !proposals[0].span.is_empty()
            );
        }
    }

    #[test]
    fn padding_changes_nothing() {
        let batch = LONG.batch(1);
        let longer = batch.with_longer_words(2).with_longer_videos(4);
        let net = net(&Params::seeded(1, &Device::Cpu));
        let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
        assert!(gap(&loss(&batch), &loss(&longer)) < 1e-5);
        assert_eq!(net.propose(&batch).unwrap(), net.propose(&longer).unwrap());
    }

    #[test]
    fn first_windows_are_the_middle_half_and_never_empty() {
        let bounds = |units| (Window::initial(units).start, Window::initial(units).end);
        assert_eq!((bounds(40), bounds(8), bounds(3), bounds(2)), ((9, 29), (1, 5), (0, 2), (0, 1)));
        assert_eq!(bounds(1), (0, 0));
    }

    #[test]
    fn an_improvement_from_apart_still_costs() {
        assert_eq!(leaf_reward(-0.2, 0.4), -1.0);
        assert_eq!(leaf_reward(0.2, 0.6), 1.6);
        assert_eq!(leaf_reward(0.4, 0.4), -0.1);
    }

    #[test]
    fn the_policies_take_turns_and_the_other_one_rests() {
        let net = net(&Params::seeded(1, &Device::Cpu));
        let rates = |epoch| {
            let pass = Pass::training(0, epoch, Rng::new(1));
            ["global_policy.weight", "left_move_value.bias", "state_fc.weight"].map(|name| net.rate(name, &pass))
        };
        assert_eq!(rates(1), [0.0, 1.0, 1.0]);
        assert_eq!(rates(2), [1.0, 0.0, 1.0]);
    }

    #[test]
    fn rewards_rise_and_moments_are_found() {
        let batch = LONG.batch(1);
        let params = Params::seeded(1, &Device::Cpu);
        let net = net(&params);
        let vars: Vec<_> = params.vars().into_iter().map(|(_, var)| var).collect();
        let adam = ParamsAdamW { lr: 5e-3, weight_decay: 0.0, ..ParamsAdamW::default() };
        let mut optimiser = AdamW::new(vars, adam).unwrap();
        let mut rewards = [Vec::new(), Vec::new()];
        for step in 0..600 {
            let epoch = 1 + step / 20 % 2;
            let loss = net.loss(&batch, &Pass::training(0, epoch, Rng::new(step as u64))).unwrap();
            rewards[epoch - 1].push(loss.parts[3].1.to_scalar::<f32>().unwrap());
            optimiser.backward_step(&loss.total).unwrap();
        }
        for rewards in &rewards {
            let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
            let (first, last) = (mean(&rewards[..20]), mean(&rewards[rewards.len() - 20..]));
            assert!(last > first + 0.1, "{first} to {last}");
        }
        let overlaps = best_overlaps(&net, &batch);
        // A unit more or less on either side: which one a policy settles on hangs on the last digit.
        assert!(overlaps.iter().all(|overlap| *overlap >= 0.6), "{overlaps:?}");
    }
}
