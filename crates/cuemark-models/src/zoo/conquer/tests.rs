//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::Code;
use crate::layers::PairLimits;
use crate::testing::{TOY, assert_learnt_by_heart, best_moment, best_video, gap, with_subtitles};

fn config(measure: Measure) -> ConquerConfig {
    ConquerConfig {
        clips: 10,
        words: 8,
        hidden: 16,
        wide: 24,
        heads: 2,
        clusters: 3,
        scoring: 8,
        dropout: 0.0,
        measure,
        pairs: PairLimits { min: 0, max: 7 },
        ..ConquerConfig::default()
    }
}

fn given(subtitle: usize) -> Given {
    Given { subtitle, ..TOY.given() }
}

fn net(measure: Measure, subtitle: usize) -> Conquer {
    Conquer::new(&config(measure), &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_allowed_pair_is_proposed_once_with_and_without_subtitles() {
    let batch = TOY.batch(1);
    for (batch, subtitle) in [(batch.clone(), 0), (with_subtitles(&batch, 7), 7)] {
        let ranked = net(Measure::Disjoint, subtitle).propose(&batch).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 36);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}

#[test]
fn padding_changes_nothing() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let net = net(Measure::Exclusive, 7);
    let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
    assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(1))) < 1e-6);
}

#[test]
fn one_batch_can_be_learnt_by_heart_and_searched_after_a_first_stage() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let build = |vb: VarBuilder| Conquer::new(&config(Measure::Exclusive), &given(7), vb);
    let model = assert_learnt_by_heart(build, &batch, 120, 3e-3, 0.2);
    let corpus = model.corpus().unwrap();
    let codes = corpus.encode(&batch.videos).unwrap();
    let codes: Vec<&Code> = codes.iter().collect();
    // A first stage that finds the right video second: re-ranking puts it first.
    for query in 0..TOY.pairs {
        let listed = [codes[(query + 1) % TOY.pairs], codes[query]];
        let one = batch.queries.select(&[query]).unwrap();
        let answers = corpus.search_after(&one, &listed, &[vec![1.0, 1.0]]).unwrap();
        assert_eq!((best_video(&answers[0]), best_moment(&answers[0])), (1, 1));
    }
}

#[test]
fn the_general_measure_multiplies_with_the_first_stage() {
    let batch = TOY.batch(1);
    let net = net(Measure::General, 0);
    let codes = net.encode(&batch.videos).unwrap();
    let codes: Vec<&Code> = codes.iter().collect();
    let one = batch.queries.select(&[0]).unwrap();
    let plain = net.search(&one, &codes).unwrap();
    let after = net.search_after(&one, &codes, &[vec![2.0, 0.5, 1.0, 3.0]]).unwrap();
    for (place, factor) in [2.0, 0.5, 1.0, 3.0].into_iter().enumerate() {
        let (plain, after) = (&plain[0][place], &after[0][place]);
        assert_eq!(after.video_score, factor);
        assert!((after.moments[0].score - factor * plain.moments[0].score).abs() < 1e-6);
    }
}

#[test]
fn a_query_is_never_trained_against_a_video_that_answers_it() {
    let mut batch = TOY.batch(1);
    batch.targets.as_mut().unwrap().positives = Some(vec![vec![0, 1], vec![1], vec![2], vec![3]]);
    let net = net(Measure::General, 0);
    for seed in 0..20 {
        let pass = Pass::training(0, 1, cuemark_core::Rng::new(seed));
        let slots = net.slots(&batch, batch.targets.as_ref().unwrap(), &pass);
        assert!(slots.iter().enumerate().all(|(query, slots)| slots[0] == query && slots.len() == 3));
        assert!(!slots[0].contains(&1));
    }
}
