//! What holds for the network on toy batches.

use cuemark_core::NormSpan;
use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{TOY, assert_learnt_by_heart, gap};

fn config(sentence_blocks: usize) -> ScdmConfig {
    let settings = format!(
        "grid = 8\nmaps = 2\nhidden = 6\nchannels = 12\nbranch = 8\ndropout = 0.0\nsentence_blocks = {sentence_blocks}\n\
         ratios = [0.375, 0.5, 0.625, 0.75, 1.0]"
    );
    toml::from_str(&settings).unwrap()
}

fn net(sentence_blocks: usize) -> Scdm {
    Scdm::new(&config(sentence_blocks), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_anchor_of_every_map_is_proposed() {
    for sentence_blocks in [0, 2] {
        let ranked = net(sentence_blocks).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            // Maps of 2 and 1 cells with 5 widths; an anchor as wide as the video may have grown beyond it.
            assert!((14..=15).contains(&proposals.len()), "{}", proposals.len());
            assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}

#[test]
fn the_published_grid_has_124_anchors() {
    let config: ScdmConfig = toml::from_str("grid = 64\nmaps = 5").unwrap();
    let anchors: Vec<Anchor> = config.anchors().into_iter().flatten().collect();
    assert_eq!(anchors.len(), 124);
    assert!(anchors.iter().all(|anchor| anchor.ends().0 >= 0.0 && anchor.ends().1 <= 64.0));
}

#[test]
fn padding_changes_nothing() {
    let (net, batch) = (net(0), TOY.batch(1));
    let logits = |batch: &Batch| {
        let forward = net.of_batch(batch, &Pass::answering()).unwrap();
        Tensor::cat(&forward.maps.iter().map(|map| &map.logits).collect::<Vec<_>>(), 1).unwrap()
    };
    assert!(gap(&logits(&batch), &logits(&batch.with_longer_words(3))) < 1e-6);
    assert!(gap(&logits(&batch), &logits(&batch.with_longer_videos(3))) < 1e-6);
}

#[test]
fn a_grid_that_cannot_be_halved_is_refused() {
    let config = ScdmConfig { grid: 12, ..config(0) };
    let refused = Scdm::new(&config, &TOY.given(), Params::counted().builder()).unwrap_err().to_string();
    assert_eq!(refused, "`[model]` of `scdm`: `grid` = 12 cannot be halved for 2 `maps`");
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    // Anchors stand on a coarse grid: the moments are put where anchors can reach them.
    let mut batch = TOY.batch(1);
    let spans = [(0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.2, 0.8)];
    batch.targets.as_mut().unwrap().spans =
        spans.iter().map(|(start, end)| NormSpan::new(*start, *end).unwrap()).collect();
    let build = |vb: VarBuilder| Scdm::new(&config(0), &TOY.given(), vb);
    assert_learnt_by_heart(build, &batch, 120, 5e-3, 0.7);
}
