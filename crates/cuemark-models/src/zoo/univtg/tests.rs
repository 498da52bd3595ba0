//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::testing::{JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, joint_batch, moved_by_padding};

fn config(padding: Padding) -> UniVtgConfig {
    UniVtgConfig { clips: 12, words: 6, network: JOINT, encoder_layers: 2, padding, ..UniVtgConfig::default() }
}

fn net(padding: Padding) -> UniVtg {
    UniVtg::new(&config(padding), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn every_real_clip_says_a_span_around_itself_and_has_a_score() {
    let batch = joint_batch();
    let answers = net(Padding::Masked).answer(&batch).unwrap();
    let lengths = |rows: &[usize]| rows.to_vec();
    assert_eq!(answers.proposals.iter().map(Vec::len).collect::<Vec<_>>(), lengths(&batch.videos.lengths));
    assert_eq!(answers.saliency.unwrap().iter().map(Vec::len).collect::<Vec<_>>(), batch.videos.lengths);
    for proposals in answers.proposals {
        assert!(proposals.is_sorted_by(|a, b| a.score >= b.score));
        assert!(proposals.iter().all(|proposal| proposal.span.start() >= 0.0 && proposal.span.end() <= 1.0));
    }
}

#[test]
fn padding_changes_nothing_unless_it_is_let_through_as_published() {
    assert_padding_changes_nothing(&net(Padding::Masked));
    assert!(moved_by_padding(&net(Padding::Leaks)) > 1e-4);
}

#[test]
fn a_batch_of_one_has_nothing_to_be_told_from() {
    let (net, mut batch) = (net(Padding::Masked), joint_batch());
    batch.videos.visual = batch.videos.visual.narrow(0, 1, 1).unwrap();
    batch.videos.mask = batch.videos.mask.narrow(0, 1, 1).unwrap();
    batch.videos.lengths = vec![batch.videos.lengths[1]];
    batch.videos.durations.truncate(1);
    batch.queries = batch.queries.select(&[1]).unwrap();
    let targets = batch.targets.as_mut().unwrap();
    targets.spans = vec![targets.spans[1]];
    let joint = targets.joint.as_mut().unwrap();
    (joint.windows, joint.clips) = (vec![joint.windows[1].clone()], vec![joint.clips[1].clone()]);
    let loss = net.loss(&batch, &Pass::training(0, 1, cuemark_core::Rng::new(1))).unwrap();
    let inter = loss.parts.iter().find(|(name, _)| *name == "inter").unwrap();
    assert_eq!(inter.1.to_scalar::<f32>().unwrap(), 0.0);
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> {
        Ok(Box::new(UniVtg::new(&config(Padding::Masked), &TOY.given(), vb)?))
    };
    assert_joint_learnt(build, 200, 5e-3);
}
