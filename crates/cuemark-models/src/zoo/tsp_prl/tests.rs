//! What holds for the network on toy batches.

use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::Rng;
use cuemark_tensor::Device;
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
        assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0 && !proposals[0].span.is_empty());
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
fn what_is_said_of_all_steps_at_once_is_what_was_said_step_by_step() {
    let (batch, net) = (LONG.batch(1), net(&Params::seeded(1, &Device::Cpu)));
    for (epoch, learning) in [(1, Learning::Leaves), (2, Learning::Root)] {
        let pass = Pass::training(0, epoch, Rng::new(3));
        let (fixed, windows, hidden) = net.begin(&batch).unwrap();
        let walked = net.roll_out(&batch, (&fixed, windows, hidden), learning, &pass).unwrap();
        let again = net.again(&batch, &fixed, &walked).unwrap();
        let [_, values, _] = walked.learnt(&again, learning).unwrap();
        let walked = Tensor::new(walked.values, &Device::Cpu).unwrap();
        assert_eq!(walked.dims(), [8, LONG.pairs]);
        assert!(gap(&walked, &values) < 1e-5);
    }
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
