//! What holds for the network on toy batches.

use candle_nn::{AdamW, Optimizer as _, ParamsAdamW};
use cuemark_core::Rng;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, gap, overfit};

fn config() -> WsslConfig {
    WsslConfig {
        clips: 16,
        hidden: 12,
        layers: 2,
        localiser_words: 6,
        captioner_words: 5,
        dropout: 0.0,
        ..WsslConfig::default()
    }
}

fn net(params: &Params) -> Wssl {
    Wssl::new(&config(), &TOY.given(), params.builder()).unwrap()
}

#[test]
fn every_anchor_is_proposed_once_inside_the_video() {
    let ranked = net(&Params::seeded(1, &Device::Cpu)).propose(&TOY.batch(1)).unwrap();
    for proposals in ranked {
        assert_eq!(proposals.len(), 15);
        assert!(proposals.iter().all(|one| one.span.start() >= 0.0 && one.span.end() <= 1.0));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padding_changes_nothing() {
    let (batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
    let longer = batch.with_longer_words(2).with_longer_videos(3);
    let first = |batch: &Batch| net.propose(batch).unwrap().iter().map(|ranked| ranked[0].span).collect::<Vec<_>>();
    for (short, long) in first(&batch).iter().zip(first(&longer)) {
        assert!((short.start() - long.start()).abs() < 1e-5);
    }
    let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
    assert!(gap(&loss(&batch), &loss(&longer)) < 1e-4);
}

#[test]
fn spans_are_neither_asked_for_nor_read_in_any_stage() {
    let mut batch = TOY.batch(1);
    assert!(!net(&Params::seeded(1, &Device::Cpu)).input().spans);
    for (stage, epoch) in [(0, 1), (1, 1), (1, 5)] {
        let loss = |batch: &Batch| {
            let net = net(&Params::seeded(1, &Device::Cpu));
            net.loss(batch, &Pass::training(stage, epoch, Rng::new(3))).unwrap().total
        };
        let with = loss(&batch);
        let targets = batch.targets.take();
        assert_eq!(gap(&with, &loss(&batch)), 0.0);
        batch.targets = targets;
    }
}

#[test]
fn sentences_of_one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Wssl::new(&config(), &TOY.given(), vb)?)) };
    let (_, first, last) = overfit(build, &TOY.batch(1), 60, 2e-2);
    assert!(last < 0.2 * first, "{first} to {last}");
}

#[test]
fn the_second_stage_lowers_both_of_its_losses() {
    let (batch, params) = (TOY.batch(1), Params::seeded(1, &Device::Cpu));
    let net = net(&params);
    let vars = params.vars().into_iter().map(|(_, var)| var).collect();
    let mut optimiser =
        AdamW::new(vars, ParamsAdamW { lr: 1e-2, weight_decay: 0.0, ..ParamsAdamW::default() }).unwrap();
    for epoch in [1, 5] {
        let mut losses = Vec::new();
        for step in 0..30 {
            let loss = net.loss(&batch, &Pass::training(1, epoch, Rng::new(step))).unwrap().total;
            losses.push(loss.to_scalar::<f32>().unwrap());
            optimiser.backward_step(&loss).unwrap();
        }
        assert!(losses[29] < 0.7 * losses[0], "epoch {epoch}: {losses:?}");
    }
}
