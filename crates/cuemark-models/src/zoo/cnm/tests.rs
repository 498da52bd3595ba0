//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::Params;

use super::*;
use crate::testing::{TOY, gap, overfit};

fn config() -> CnmConfig {
    CnmConfig {
        clips: 8,
        keep_every: 2,
        hidden: 16,
        heads: 2,
        ffn: 24,
        clip_layers: 1,
        word_layers: 1,
        dropout: 0.0,
        ..CnmConfig::default()
    }
}

fn net(params: &Params) -> Cnm {
    Cnm::new(&config(), &TOY.given(), params.builder()).unwrap()
}

#[test]
fn every_query_gets_one_span_inside_its_video() {
    let ranked = net(&Params::seeded(1, &Device::Cpu)).propose(&TOY.batch(1)).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 1);
        assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
    }
}

#[test]
fn padded_words_change_nothing() {
    let (batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
    let longer = batch.with_longer_words(3);
    for (short, long) in net.propose(&batch).unwrap().iter().zip(net.propose(&longer).unwrap()) {
        assert!((short[0].span.start() - long[0].span.start()).abs() < 1e-5);
    }
    let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
    assert!(gap(&loss(&batch), &loss(&longer)) < 1e-4);
}

#[test]
fn spans_are_neither_asked_for_nor_read() {
    let (mut batch, net) = (TOY.batch(1), net(&Params::seeded(1, &Device::Cpu)));
    assert!(!net.input().spans);
    let loss = |batch: &Batch| net.loss(batch, &Pass::training(0, 1, Rng::new(3))).unwrap().total;
    let with = loss(&batch);
    batch.targets = None;
    assert_eq!(gap(&with, &loss(&batch)), 0.0);
}

#[test]
fn the_contrast_moves_the_mask_generator_alone_and_the_reconstruction_all_else() {
    let params = Params::seeded(1, &Device::Cpu);
    let loss = net(&params).loss(&TOY.batch(1), &Pass::training(0, 1, Rng::new(3))).unwrap();
    for (part, loss) in &loss.parts {
        let gradients = loss.backward().unwrap();
        for (name, var) in params.vars() {
            let moves_mask = name.starts_with("fc_mask_gen");
            let reached = gradients.get(var.as_tensor()).is_some();
            assert_eq!(reached, moves_mask == (*part == "contrast"), "{part}: {name}");
        }
    }
}

#[test]
fn kept_clips_reach_from_the_first_to_the_last() {
    assert_eq!(kept_clips(24, 4), [0, 4, 9, 13, 18, 23]);
    assert_eq!(kept_clips(200, 4).len(), 50);
    assert_eq!(kept_clips(200, 4)[49], 199);
    assert_eq!(kept_clips(3, 4), [0]);
}

#[test]
fn hidden_words_of_one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Cnm::new(&config(), &TOY.given(), vb)?)) };
    let (_, first, last) = overfit(build, &batch, 100, 1e-2);
    assert!(last < 0.6 * first, "{first} to {last}");
}
