//! One walk of the window and what is learnt from it.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{bce_with_logits, log_softmax};
use cuemark_tensor::{DType, Pass};

use super::window::Window;
use super::{BRANCHES, Learning, Outputs, TspPrlConfig, columns};
use crate::layers::Linear;
use crate::{Loss, Result};

/// Discounted rewards of one episode; the last one counts the value of its own state as what follows.
pub(super) fn returns(rewards: &[f32], last_value: f32, discount: f32) -> Vec<f32> {
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
pub(super) fn actor_critic(
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

/// What every episode of a batch did, `[step][sample]`.
#[derive(Default)]
pub(super) struct Rollout {
    /// What was looked at, and whether the episode still went on then.
    pub(super) windows: Vec<Vec<Window>>,
    pub(super) live: Vec<Vec<bool>>,
    /// What the policies chose.
    pub(super) branches: Vec<Vec<usize>>,
    pub(super) actions: Vec<Vec<usize>>,
    /// What the critic of the policy that learns thought of the state.
    pub(super) values: Vec<Vec<f32>>,
    /// Overlaps before the actions, and what these earned.
    pub(super) overlaps: Vec<Vec<f32>>,
    pub(super) rewards: Vec<Vec<f32>>,
}

/// What stays the same in all steps of an episode.
pub(super) struct Fixed {
    /// What the sentence lets through and what is seen of the whole video, `[batch, hidden]`.
    pub(super) gate: Tensor,
    pub(super) global: Tensor,
    /// All policies and critics.
    pub(super) heads: Linear,
}

impl Fixed {
    /// The same without a gradient.
    pub(super) fn detached(&self) -> Self {
        Self { gate: self.gate.detach(), global: self.global.detach(), heads: self.heads.clone() }
    }
}

/// The likeliest action of every policy, `[sample]`, of leaves `[branch][sample]`.
pub(super) struct Greedy {
    pub(super) root: Vec<usize>,
    pub(super) leaves: Vec<Vec<usize>>,
}

/// What the network said of one step, in main memory: one trip from the device for all of it.
pub(super) struct Said(Vec<Vec<f32>>);

impl Said {
    pub(super) fn of(outputs: &Outputs) -> Result<Self> {
        Ok(Self(Tensor::cat(&[&outputs.said, &outputs.align], 1)?.detach().to_vec2::<f32>()?))
    }

    fn likeliest(&self, branch: Option<usize>) -> Vec<usize> {
        let best = |row: &Vec<f32>| {
            let logits = row[columns(branch)].iter().enumerate();
            logits.fold((0, f32::NEG_INFINITY), |best, (n, logit)| if *logit > best.1 { (n, *logit) } else { best }).0
        };
        self.0.iter().map(best).collect()
    }

    pub(super) fn greedy(&self) -> Greedy {
        let leaves = (0..BRANCHES.len()).map(|branch| self.likeliest(Some(branch))).collect();
        Greedy { root: self.likeliest(None), leaves }
    }

    /// An action per sample, drawn by its probability; the likeliest when not training.
    pub(super) fn draw(&self, branch: Option<usize>, pass: &Pass) -> Vec<usize> {
        if !pass.is_training() {
            return self.likeliest(branch);
        }
        let draw = |row: &Vec<f32>| {
            let logits = &row[columns(branch)];
            let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f64> = logits.iter().map(|logit| f64::from(logit - most).exp()).collect();
            pass.draw(|rng| rng.weighted(&weights)).flatten().unwrap_or(0)
        };
        self.0.iter().map(draw).collect()
    }

    /// What the critic of a policy says of a sample.
    pub(super) fn value(&self, branch: Option<usize>, sample: usize) -> f32 {
        self.0[sample][columns(branch).end]
    }

    /// The logit of every sample's overlap.
    pub(super) fn aligns(&self) -> Vec<f32> {
        self.0.iter().filter_map(|row| row.last().copied()).collect()
    }
}

impl Rollout {
    /// Log probabilities of the actions taken, values and entropies of the policy that learns, `[step, sample]` each.
    pub(super) fn learnt(&self, outputs: &Outputs, learning: Learning) -> Result<[Tensor; 3]> {
        let shape = (self.windows.len(), self.windows.first().map_or(0, Vec::len));
        let index = |places: Vec<u32>| Tensor::from_vec(places, (shape.0, shape.1, 1), outputs.said.device());
        let logs = |logits: &Tensor| -> Result<(Tensor, Tensor)> {
            let logs = log_softmax(logits, D::Minus1)?;
            let entropy = (&logs * logs.exp()?)?.sum_keepdim(D::Minus1)?.neg()?;
            Ok((logs, entropy))
        };
        let branches = self.branches.concat();
        let branch = || branches.iter().map(|branch| *branch as u32).collect::<Vec<u32>>();
        let (log_prob, value, entropy) = match learning {
            Learning::Root => {
                let (policy, value) = outputs.of(None)?;
                let (logs, entropy) = logs(&policy)?;
                (logs.gather(&index(branch())?, 2)?, value, entropy)
            }
            Learning::Leaves => {
                let (mut all, mut values, mut entropies) = (Vec::new(), Vec::new(), Vec::new());
                for number in 0..BRANCHES.len() {
                    let (policy, value) = outputs.of(Some(number))?;
                    let (logs, entropy) = logs(&policy)?;
                    all.push(logs);
                    values.push(value);
                    entropies.push(entropy);
                }
                let first = |branch: usize| BRANCHES[..branch].iter().map(|(_, _, actions)| actions).sum::<usize>();
                let places = branches.iter().zip(self.actions.concat());
                let places = places.map(|(branch, action)| (first(*branch) + action) as u32).collect();
                let log_prob = Tensor::cat(&all, 2)?.gather(&index(places)?, 2)?;
                let chosen = index(branch())?;
                let of_branch = |parts: &[Tensor]| Tensor::cat(parts, 2)?.gather(&chosen, 2);
                (log_prob, of_branch(&values)?, of_branch(&entropies)?)
            }
        };
        Ok([log_prob.squeeze(2)?, value.contiguous()?.squeeze(2)?, entropy.squeeze(2)?])
    }

    /// Steps of sample `row` that count: up to and including the one that ended its episode.
    fn length(&self, row: usize) -> usize {
        self.live.iter().filter(|live| live[row]).count()
    }

    /// The loss, of what the network says of all steps, `[step, sample, ..]`.
    pub(super) fn loss(&self, outputs: &Outputs, learning: Learning, config: &TspPrlConfig) -> Result<Loss> {
        let (steps, samples) = (self.windows.len(), self.windows.first().map_or(0, Vec::len));
        let [log_probs, values, entropies] = self.learnt(outputs, learning)?;
        let (mut expected, mut shares, mut total_reward) =
            (vec![0f32; samples * steps], vec![0f32; samples * steps], 0.0);
        for row in 0..samples {
            let length = self.length(row);
            let rewards: Vec<f32> = (0..length).map(|step| self.rewards[step][row]).collect();
            let last_value = length.checked_sub(1).map_or(0.0, |last| self.values[last][row]);
            for (step, value) in returns(&rewards, last_value, config.discount as f32).into_iter().enumerate() {
                expected[step * samples + row] = value;
                shares[step * samples + row] = 1.0 / (length * samples) as f32;
            }
            total_reward += rewards.iter().sum::<f32>() / (length.max(1) * samples) as f32;
        }
        let device = values.device();
        let square = |values: Vec<f32>| Tensor::from_vec(values, (steps, samples), device);
        let (expected, shares) = (square(expected)?, square(shares)?);
        let (policy, value) = actor_critic(&log_probs, &values, &entropies, &expected, config.entropy_weight)?;
        let (policy, value) = ((policy * &shares)?.sum_all()?, (value * &shares)?.sum_all()?);
        let overlaps = square(self.overlaps.concat())?;
        let touching = overlaps.gt(0.0)?.to_dtype(DType::F32)?;
        let align = (bce_with_logits(&outputs.align.squeeze(2)?, &overlaps)? * &touching)?.sum_all()?;
        let align = (align / touching.sum_all()?.maximum(1.0)?)?;
        let total = ((&policy + &value)? + &align)?;
        let reward = Tensor::new(total_reward, device)?;
        Ok(Loss { total, parts: vec![("policy", policy), ("value", value), ("align", align), ("reward", reward)] })
    }
}
