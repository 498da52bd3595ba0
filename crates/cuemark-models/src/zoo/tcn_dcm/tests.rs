//! What holds for the network on toy batches.

use cuemark_core::Rng;
use cuemark_tensor::Params;

use super::*;
use crate::VideoBatch;
use crate::layers::MapSize;
use crate::losses::ScaledIou;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config() -> TcnDcmConfig {
    TcnDcmConfig {
        map: MapSize { pre_clips: 8, clips: 8, counts: vec![7] },
        hidden: 16,
        lstm_layers: 1,
        heads: 2,
        dropout: 0.1,
        eta: 1.0,
        kernel: 3,
        layers: 2,
        gamma: 1.0,
        sigma: 1.0,
        lambda: 0.001,
        frobenius: 1e-5,
        targets: ScaledIou::default(),
        nms: 0.45,
    }
}

fn net() -> TcnDcm {
    TcnDcm::new(&config(), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

/// The toy batch with noise, in which nothing is to be found, as the other video of each query.
fn batch() -> Batch {
    let mut batch = TOY.batch(1);
    let mut rng = Rng::new(2);
    let noise = (0..batch.videos.visual.elem_count()).map(|_| (0.5 * rng.normal()) as f32).collect();
    let visual = Tensor::from_vec(noise, batch.videos.visual.shape(), &Device::Cpu).unwrap();
    batch.other_videos = Some(VideoBatch { visual, ..batch.videos.clone() });
    batch
}

#[test]
fn every_valid_cell_is_proposed_once_with_a_probability() {
    let ranked = net().propose(&batch()).unwrap();
    assert_eq!(ranked.len(), TOY.pairs);
    for proposals in ranked {
        assert_eq!(proposals.len(), 36);
        assert!(proposals.iter().all(|proposal| (0.0..=1.0).contains(&proposal.score)));
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
    }
}

#[test]
fn padded_words_change_nothing() {
    let (net, batch) = (net(), batch());
    let logits = |batch: &Batch| {
        let queries = &batch.queries;
        net.forward(&batch.videos.visual, &queries.words, &queries.lengths, &Pass::answering()).unwrap().logits
    };
    assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
}

#[test]
fn without_another_video_only_a_zero_gamma_trains() {
    let with = |gamma: f64| {
        let config = TcnDcmConfig { gamma, ..config() };
        TcnDcm::new(&config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    };
    let error = with(1.0).loss(&TOY.batch(1), &Pass::answering()).unwrap_err();
    assert_eq!(error.to_string(), "`tcn-dcm` needs another video for each of its training queries");
    let loss = with(0.0).loss(&TOY.batch(1), &Pass::answering()).unwrap();
    assert!(loss.parts.iter().all(|(name, _)| *name != "bce_negative"));
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let batch = batch();
    // Without the location loss, whose floor is far above 0 at this width.
    let config = TcnDcmConfig { sigma: 0.0, dropout: 0.0, ..config() };
    assert_learnt_by_heart(|vb| TcnDcm::new(&config, &TOY.given(), vb), &batch, 150, 1e-2, 0.3);
}
