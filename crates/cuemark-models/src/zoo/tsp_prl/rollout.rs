//! One walk of the window and what is learnt from it.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{bce_with_logits, log_softmax};
use cuemark_tensor::{DType, Pass};

use super::{BRANCHES, Learning, Outputs, TspPrlConfig};
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

/// What every episode of a batch did, step by step.
#[derive(Default)]
pub(super) struct Rollout {
    log_probs: Vec<Tensor>,
    values: Vec<Tensor>,
    entropies: Vec<Tensor>,
    aligns: Vec<Tensor>,
    /// Overlaps before the actions, rewards, and whether the step counts, `[step][sample]`.
    pub(super) overlaps: Vec<Vec<f32>>,
    pub(super) rewards: Vec<Vec<f32>>,
    pub(super) counts: Vec<Vec<f32>>,
}

/// What stays the same in all steps of an episode.
pub(super) struct Fixed {
    pub(super) global: Tensor,
    pub(super) sentences: Tensor,
}

/// The likeliest action of every policy, `[sample]`, of leaves `[branch][sample]`.
pub(super) struct Greedy {
    pub(super) root: Vec<usize>,
    pub(super) leaves: Vec<Vec<usize>>,
}

impl Greedy {
    pub(super) fn of(outputs: &Outputs) -> Result<Self> {
        let leaves = outputs.leaves.iter().map(|leaf| likeliest(&leaf.0)).collect::<Result<_>>()?;
        Ok(Self { root: likeliest(&outputs.root.0)?, leaves })
    }
}

fn likeliest(logits: &Tensor) -> Result<Vec<usize>> {
    Ok(logits.argmax(1)?.to_vec1::<u32>()?.into_iter().map(|action| action as usize).collect())
}

/// An action per row, drawn by its probability; the likeliest when not training.
pub(super) fn sample(logits: &Tensor, pass: &Pass) -> Result<Vec<usize>> {
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
    pub(super) fn remember(
        &mut self,
        outputs: &Outputs,
        learning: Learning,
        branches: &[usize],
        actions: &[usize],
    ) -> Result<()> {
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

    pub(super) fn loss(&self, config: &TspPrlConfig) -> Result<Loss> {
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
