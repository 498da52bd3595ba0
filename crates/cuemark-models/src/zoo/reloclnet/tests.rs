//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::PairLimits;
use crate::losses::DrawnNegatives;
use crate::testing::{TOY, assert_learnt_by_heart, best_moment, best_video, gap, with_subtitles};

fn config() -> ReLoClNetConfig {
    ReLoClNetConfig {
        clips: 10,
        words: 8,
        hidden: 16,
        heads: 2,
        dropout: 0.0,
        pairs: PairLimits { min: 1, max: 7 },
        ranking: DrawnNegatives { hard_from: 100, ..DrawnNegatives::default() },
        ..ReLoClNetConfig::default()
    }
}

fn given(subtitle: usize) -> Given {
    Given { subtitle, ..TOY.given() }
}

fn net(config: &ReLoClNetConfig, subtitle: usize) -> ReLoClNet {
    ReLoClNet::new(config, &given(subtitle), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_allowed_pair_is_proposed_once_with_and_without_subtitles() {
    let batch = TOY.batch(1);
    for (batch, subtitle) in [(batch.clone(), 0), (with_subtitles(&batch, 7), 7)] {
        let ranked = net(&config(), subtitle).propose(&batch).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 28);
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}

#[test]
fn padding_changes_nothing() {
    let batch = with_subtitles(&TOY.batch(1), 7);
    let net = net(&ReLoClNetConfig { endpoints: true, ..config() }, 7);
    let loss = |batch: &Batch| net.loss(batch, &Pass::answering()).unwrap().total;
    assert!(gap(&loss(&batch), &loss(&batch.with_longer_words(2).with_longer_videos(1))) < 1e-5);
}

#[test]
fn one_batch_can_be_learnt_by_heart_and_searched() {
    let batch = TOY.batch(1);
    let build = |vb: VarBuilder| ReLoClNet::new(&config(), &given(0), vb);
    let model = assert_learnt_by_heart(build, &batch, 200, 5e-3, 0.2);
    let corpus = model.corpus().unwrap();
    let codes = corpus.encode(&batch.videos).unwrap();
    let codes: Vec<&Code> = codes.iter().collect();
    for (query, answers) in corpus.search(&batch.queries, &codes).unwrap().iter().enumerate() {
        assert_eq!((best_video(answers), best_moment(answers)), (query, query));
    }
}

#[test]
fn relevance_weighs_every_loss_but_the_hinges() {
    let mut batch = TOY.batch(1);
    let net = net(&config(), 0);
    let of = |batch: &Batch| {
        let loss = net.loss(batch, &Pass::answering()).unwrap();
        let hinges: f32 = loss.parts[3..].iter().map(|part| part.1.to_scalar::<f32>().unwrap()).sum();
        (loss.total.to_scalar::<f32>().unwrap(), hinges)
    };
    let (whole, hinges) = of(&batch);
    batch.targets.as_mut().unwrap().relevance = Some(vec![0.25; TOY.pairs]);
    assert!((of(&batch).0 - (hinges + 0.25 * (whole - hinges))).abs() < 1e-5);
}
