//! What holds for the network on toy batches.

use cuemark_core::NormSpan;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, gap, overfit};

fn config() -> CplConfig {
    CplConfig {
        clips: 8,
        keep_every: 2,
        hidden: 16,
        heads: 2,
        ffn: 24,
        clip_layers: 1,
        word_layers: 1,
        proposals: 3,
        dropout: 0.0,
        ..CplConfig::default()
    }
}

fn net() -> Cpl {
    Cpl::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_query_gets_its_proposals_best_first_whatever_else_is_asked() {
    let batch = TOY.batch(1);
    let ranked = net().propose(&batch).unwrap();
    assert!(ranked.iter().all(|proposals| proposals.len() == 3));
    assert!(ranked.iter().all(|proposals| proposals.is_sorted_by(|a, b| a.score >= b.score)));
    for (short, long) in ranked.iter().zip(net().propose(&batch.with_longer_words(3)).unwrap()) {
        for (short, long) in short.iter().zip(long) {
            assert!((short.score - long.score).abs() < 1e-4);
            assert!((short.span.start() - long.span.start()).abs() < 1e-4);
        }
    }
}

#[test]
fn spans_are_neither_asked_for_nor_read() {
    let (mut batch, net) = (TOY.batch(1), net());
    assert!(!net.input().spans);
    let loss = |batch: &Batch| net.loss(batch, &Pass::training(0, 1, Rng::new(3))).unwrap().total;
    let with = loss(&batch);
    batch.targets = None;
    assert_eq!(gap(&with, &loss(&batch)), 0.0);
}

#[test]
fn votes_go_to_the_span_that_most_agree_with() {
    let proposal = |start, end, score| Proposal { span: NormSpan::new(start, end).unwrap(), score };
    let ranked = [proposal(0.8, 1.0, -1.0), proposal(0.1, 0.5, -2.0), proposal(0.1, 0.6, -3.0)];
    assert_eq!(vote(&ranked, |_, _| 1.0)[0].span.start(), 0.1);
    assert_eq!(vote(&ranked, |one, first| one.span.iou_hull(first.span))[0].span.start(), 0.8);
}

#[test]
fn negatives_grow_with_the_epochs_unless_they_are_full_at_once() {
    let net = net();
    assert_eq!((net.growth(0), net.growth(30), net.growth(60)), (0.0, 1.0, 1.0));
    let at_once = CplConfig { gamma: 0.0, ..config() };
    let at_once = Cpl::new(&at_once, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap();
    assert_eq!(at_once.growth(0), 1.0);
}

#[test]
fn hidden_words_of_one_batch_can_be_learnt_by_heart() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(Cpl::new(&config(), &TOY.given(), vb)?)) };
    let (_, first, last) = overfit(build, &batch, 100, 1e-2);
    assert!(last < 0.7 * first, "{first} to {last}");
}
