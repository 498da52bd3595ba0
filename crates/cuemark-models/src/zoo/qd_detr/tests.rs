//! What holds for the network on toy batches.

use cuemark_tensor::{Device, Params};

use super::*;
use crate::layers::detr::MaskOrder;
use crate::testing::{
    JOINT, TOY, assert_joint_learnt, assert_padding_changes_nothing, assert_well_formed, joint_batch,
};

fn config() -> QdDetrConfig {
    QdDetrConfig { clips: 12, words: 6, network: JOINT, proposals: 5, ..QdDetrConfig::default() }
}

fn net(config: &QdDetrConfig) -> QdDetr {
    QdDetr::new(config, &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
}

#[test]
fn spans_are_ordered_and_every_real_clip_has_a_score() {
    assert_well_formed(&net(&config()), 5);
}

#[test]
fn padding_changes_nothing() {
    assert_padding_changes_nothing(&net(&config()));
}

/// The second video is shorter than the first and its query too: as published, clips of the first lose a word by that.
#[test]
fn neighbours_in_the_batch_change_answers_only_when_samples_are_mixed_as_published() {
    let mut batch = joint_batch();
    batch.videos.lengths[1] = 6;
    let keep = crate::layers::real_steps(&batch.videos.lengths, TOY.clips, &Device::Cpu).unwrap();
    batch.videos.mask = keep;
    let scores = |mask_order: MaskOrder| {
        let net = net(&QdDetrConfig { mask_order, ..config() });
        net.answer(&batch).unwrap().saliency.unwrap()[0].clone()
    };
    let gap = |a: Vec<f32>, b: Vec<f32>| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(gap(scores(MaskOrder::None), scores(MaskOrder::Tiled)) > 1e-4);
    let alone = {
        let mut other = batch.clone();
        other.queries.lengths[1] = 5;
        other.queries.mask = crate::layers::real_steps(&other.queries.lengths, TOY.words, &Device::Cpu).unwrap();
        net(&config()).answer(&other).unwrap().saliency.unwrap()[0].clone()
    };
    assert!(gap(scores(MaskOrder::None), alone) < 1e-5);
}

#[test]
fn with_one_decoder_layer_the_anchors_are_the_same_for_all() {
    let one = net(&QdDetrConfig { decoder_layers: 1, ..config() });
    let (batch, pass) = (joint_batch(), Pass::answering());
    let inputs = one.inputs(&batch).unwrap();
    let projected = one.project(&inputs, &pass).unwrap();
    let encoded = one.encode(&inputs, &projected, &inputs.own_text(), &pass).unwrap();
    let (decoded, _) = one.decode(&inputs, &projected, &encoded.memory, &pass).unwrap();
    let anchors = decoded.before[0].to_vec3::<f32>().unwrap();
    let learned = sigmoid(&one.anchors).unwrap().to_vec2::<f32>().unwrap();
    assert!(anchors.iter().all(|sample| *sample == learned));
}

#[test]
fn one_batch_can_be_learnt_by_heart() {
    let build = |vb: VarBuilder| -> Result<Box<dyn Model>> { Ok(Box::new(QdDetr::new(&config(), &TOY.given(), vb)?)) };
    assert_joint_learnt(build, 150, 5e-3);
}
